"""How our types and errors look on a connection."""
