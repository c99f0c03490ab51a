"""``python -m yaosb_jupyter`` is ``yaosb``."""

import sys

from yaosb_jupyter.cli import main

sys.exit(main())
