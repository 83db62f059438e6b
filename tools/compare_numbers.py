"""Compare the numbers of two source trees: every method of the catalogue, on its own fixed stream.

    python tools/compare_numbers.py save TREE out/old.npz       once for each tree
    python tools/compare_numbers.py compare out/old.npz out/new.npz [tolerance]

A move or a rename must not change a bit; a merge may differ by rounding (1e-12, relative).
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

FIELDS = ("mean", "var", "log_evidence", "residual", "trust", "change_probability", "runlength", "ok")


def numbers(tree: Path) -> dict[str, Any]:
    """All fields of `Info` and the last belief, for each method of a tree's catalogue."""
    sys.path[:0] = [str(tree / "src"), str(tree / "tests")]
    import jax

    jax.config.update("jax_enable_x64", True)
    from catalogue import ROWS

    found = {}
    for name, row in ROWS.items():
        method, state = row.start()
        state, info = method.scan(state, row.X, row.Y, keep=FIELDS)
        found |= {f"{name}.{field}": np.asarray(getattr(info, field)) for field in FIELDS}
        found |= {f"{name}.belief_mean": np.asarray(method.belief(state).mean)}
        print(name, file=sys.stderr)
    return found


def compare(one: Path, two: Path, tolerance: float) -> int:
    """Print what differs by more than a tolerance; the number of arrays that do."""
    old, new = np.load(one), np.load(two)
    bad = 0
    for name in sorted(set(old.files) | set(new.files)):
        if name not in old.files or name not in new.files:
            print(f"{name}: only in one of the two")
            bad += 1
        elif not np.array_equal(old[name], new[name], equal_nan=True):
            a, b = (np.nan_to_num(np.asarray(part[name], float)) for part in (old, new))
            worst = float(np.max(np.abs(a - b) / np.maximum(1.0, np.abs(a)))) if a.shape == b.shape else np.inf
            if worst > tolerance:
                print(f"{name}: differs by {worst:.2g}")
                bad += 1
    print(f"{len(old.files)} arrays, {bad} differ by more than {tolerance:g}")
    return bad


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["save", tree, file]:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(file, **numbers(Path(tree).resolve()))
        case ["compare", one, two, *tolerance]:
            sys.exit(bool(compare(Path(one), Path(two), float(tolerance[0]) if tolerance else 0.0)))
        case _:
            sys.exit(__doc__)
