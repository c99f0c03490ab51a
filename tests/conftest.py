"""Fixtures for every test. What the machine must offer is in `tests.rig.require`."""

pytest_plugins = ["tests.rig.require"]
