"""`python -m filtax`: the command line, where the folder of scripts is not on the path."""

from filtax.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
