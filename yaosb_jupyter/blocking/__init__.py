"""The blocking face: every call waits in its own thread for what happens on the background loop."""
