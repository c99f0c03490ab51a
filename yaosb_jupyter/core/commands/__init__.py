"""Commands in a sandbox, as programs run them and as the manager follows them."""
