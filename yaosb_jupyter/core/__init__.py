"""The manager: what sandboxes exist, what may be done with them, and when they end."""
