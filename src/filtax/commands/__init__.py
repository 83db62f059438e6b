"""The commands of the command line, one module each: they parse and print, and compute nothing.

A module defines a function for typer; `filtax.cli` gives it its name. What it needs is imported when it runs.
"""

__all__ = []
