"""What the commands share: exit codes, words and tables, and how JAX is started."""

import os
import sys
from collections.abc import Sequence
from typing import Any

FAILED, BAD_INPUT, BAD_CHECKPOINT, NOT_WRITTEN, INTERRUPTED = 1, 2, 3, 4, 130
LARGEST_SEED = 2**63 - 1


def talk(message: str) -> None:
    """Say something to the person, not to the program that reads the output."""
    print(message, file=sys.stderr, flush=True)


def print_table(rows: Sequence[tuple[Any, ...]], widest: int = 200) -> None:
    """Print rows in columns; a cell above `widest` pushes its own row only."""
    words = [tuple(str(cell) for cell in row) for row in rows]
    widths = [
        max((len(cell) for cell in column if len(cell) <= widest), default=0) for column in zip(*words, strict=True)
    ]
    for row in words:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def start_jax() -> None:
    """Compute in 64 bits, and keep compiled programs for the next time; where they cannot be kept, go without."""
    import jax

    from filtax._xla import cache_compilations, tune_if_possible

    tune_if_possible()
    jax.config.update("jax_enable_x64", True)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        cache_compilations()
