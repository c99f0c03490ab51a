"""The detached daemon, as `yaosb_jupyter.daemon.start` starts it: ``python -m yaosb_jupyter.daemon``."""

import os
import sys


def detach() -> None:
    """Lets the starter go on, and leaves it no child to wait for. Before anything makes a thread."""
    if os.fork():
        os._exit(0)


if __name__ == "__main__":
    detach()
    from yaosb_jupyter.daemon.detached import main

    sys.exit(main(sys.argv[1:]))
