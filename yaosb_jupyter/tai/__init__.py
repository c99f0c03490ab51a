"""One host: its runtime, volumes, proxy and the ways to connect."""
