"""`python -m filtax`: the command line, where the folder of scripts is not on the path."""

import sys

from filtax.cli import main

if __name__ == "__main__":
    sys.exit(main())
