"""The runtimes, one module or package each, imported on first use."""
