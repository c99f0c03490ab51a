"""A sandbox's files, as programs, notebooks and command lines use them."""
