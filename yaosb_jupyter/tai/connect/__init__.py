"""Connections to what listens inside a sandbox, in its own protocol: WebSocket, event stream, plain TCP."""
