"""Tables that the tests of runs read."""

import numpy as np

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
