"""The files of sandboxes."""
