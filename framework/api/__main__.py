"""``python -m recaffe``: the command line."""

import sys

from .framework.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
