"""An extension for the reference pages: shows the doctest examples of a docstring as code.

Docstrings end with bare `>>>` lines, or with a section "Example:". In Markdown the first are quotations of quotations,
so each block is put into a fence; the second has to be called "Examples:" to be taken for code.
"""

from typing import Any

import griffe

__all__ = ["DoctestFences", "fenced"]


class DoctestFences(griffe.Extension):
    """Rewrite every docstring as it is loaded."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called by griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """Put each run of lines from `>>>` to the next empty line into a fence; indented ones are in a section already."""
    lines, inside = [], False
    for line in docstring.splitlines():
        line = "Examples:" if line == "Example:" else line
        if not inside and line.startswith(">>> "):
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, *(["```"] if inside else [])])
