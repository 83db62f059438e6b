"""A table in plain text, and what it says about each method in words."""

import math
from collections.abc import Mapping, Sequence

from filtax.evaluate.metrics import Metric

__all__ = ["judge", "layout", "listed"]

Table = Mapping[str, Mapping[str, float]]


def judge(table: Table, methods: Sequence[str], metrics: Sequence[Metric]) -> list[str]:
    """Hold each method against all other lines, the baselines; one sentence each.

    A metric that has no better side (coverage, PIT) is no contest, and a line without a score takes no part.

    Example:
        >>> from filtax.evaluate import mae
        >>> from filtax.evaluate.verdict import judge
        >>> judge({"kf": {"mae": 2.0}, "last-value": {"mae": 1.0}}, ["kf"], [mae])
        ['kf loses to last-value on mae (2 against 1).']
    """
    baselines = [name for name in table if name not in methods]
    contests = [chosen for chosen in metrics if chosen.lower_is_better is not None]
    return [_sentence(table, name, baselines, contests) for name in methods]


def _sentence(table: Table, name: str, baselines: Sequence[str], contests: Sequence[Metric]) -> str:
    if not baselines:
        return f"{name} was held against no baseline."
    losses, ties, wins = [], [], []
    for chosen in contests:
        sign = 1.0 if chosen.lower_is_better else -1.0
        rivals = {b: table[b][chosen.name] for b in baselines if not math.isnan(table[b][chosen.name])}
        own = table[name][chosen.name]
        if math.isnan(own) or not rivals:
            continue
        best = min(rivals, key=lambda b: sign * rivals[b])
        if sign * own > sign * rivals[best]:
            losses.append(f"to {best} on {chosen.name} ({_short(own)} against {_short(rivals[best])})")
        elif own == rivals[best]:
            ties.append(f"{best} on {chosen.name}")
        else:
            wins.append(chosen.name)
    parts = [f"loses {listed(losses)}"] if losses else []
    parts += [f"equals {listed(ties)}"] if ties else []
    parts += [f"beats every baseline on {listed(wins)}"] if wins else []
    return f"{name} {'; it '.join(parts) or 'has no score to compare'}."


def layout(table: Table, costs: Mapping[str, float | None]) -> str:
    """Align a table in columns; the last is the time per row.

    Example:
        >>> from filtax.evaluate.verdict import layout
        >>> print(layout({"kf": {"mae": 2.0}, "last-value": {"mae": 1.0}}, {"kf": 3.5}))
                     mae  us/row
        kf             2     3.5
        last-value     1       -
    """
    titles = ["", *next(iter(table.values())), "us/row"]
    lines = [[name, *map(_short, line.values()), _cost(costs.get(name))] for name, line in table.items()]
    widths = [max(len(line[i]) for line in [titles, *lines]) for i in range(len(titles))]
    aligned = [
        [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        for line in [titles, *lines]
    ]
    return "\n".join("  ".join(line) for line in aligned)


def _short(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _cost(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def listed(words: Sequence[str]) -> str:
    """Words in a row, the last with an "and".

    >>> listed(["mae"]), listed(["mae", "median", "rmse"])
    ('mae', 'mae, median and rmse')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
