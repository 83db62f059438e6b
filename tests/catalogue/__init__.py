"""The rows of the conformance table: one entry a method, with a small stream it can learn from.

A new method is one row, in the file of its kind.
"""

from catalogue import changes, drawn, filters, outliers, published, scaled
from catalogue.streams import T

__all__ = ["ROWS", "T"]

ROWS = {name: row for kind in (filters, changes, outliers, drawn, scaled, published) for name, row in kind.ROWS.items()}
