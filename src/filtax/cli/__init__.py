"""The command line: its commands parse and print, and compute nothing.

A module defines a function for typer, and `_main` gives it its name. What a command needs is imported when it runs.
"""

from filtax.cli._main import main, run

__all__ = ["main", "run"]
