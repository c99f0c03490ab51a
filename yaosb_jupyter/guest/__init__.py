"""The program inside a sandbox. Standard library only, Python 3.8 and later; imports nothing else of the package."""
