"""The contract's fixtures, for what its hosts do when something goes wrong."""

from tests.contract.conftest import directory, info, labels, make_box, make_spec, opened, runtime

__all__ = ["directory", "info", "labels", "make_box", "make_spec", "opened", "runtime"]
