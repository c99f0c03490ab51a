"""The host's end of links: streams of frames over one connection, with flow control."""
