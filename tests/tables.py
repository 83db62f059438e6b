"""Tables that the tests write and read."""

import numpy as np

from filtax.io import open_table

HOURS = np.datetime64("2024-01-01T00:00") + 60 * np.arange(2000)


def load(seed, rows=500):
    """A daily cycle and noise."""
    cycle = 5.0 * np.sin(2 * np.pi * np.arange(rows) / 24)
    return 50.0 + cycle + np.random.default_rng(seed).normal(size=rows)


def write(path, y, time=HOURS, **columns):
    """A table of times, `load` and other columns; NaN is an empty field."""
    cells = [time[: len(y)], ["" if v != v else repr(float(v)) for v in y], *columns.values()]
    rows = [",".join(map(str, row)) for row in zip(*cells, strict=True)]
    path.write_text("\n".join([",".join(["when", "load", *columns]), *rows]) + "\n")
    return str(path)


def written(folder, data, name="t.csv"):
    """A file of these bytes, or of this text."""
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def read(path, **options):
    """All numbers of a table, all records of rejected rows, and the chunks."""
    chunks = list(open_table(path, **{"target": "a", **options}))
    numbers = np.concatenate([chunk.numbers for chunk in chunks]) if chunks else np.empty((0, 0))
    return numbers, [each for chunk in chunks for each in chunk.rejected], chunks
