"""Desktops of sandboxes for browsers: a page of ours, and the WebSocket that carries the VNC server's bytes.

`desktop` answers the requests of one desktop's path, `bridge` is the WebSocket, `viewer/` the page with noVNC.
"""
