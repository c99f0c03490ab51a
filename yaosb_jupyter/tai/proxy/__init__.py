"""Web applications of sandboxes for browsers: a listener on the loopback, and what it does with a request.

`exchange` passes one request on and its response back, whoever listens; `headers` is what it may carry; `server` is the
listener, with paths that `tickets` made.
"""
