"""Words that several places say."""

__all__ = ["counted", "too_far"]


def counted(count: int, word: str) -> str:
    """A number of things, one of them in the singular.

    >>> counted(1, "row"), counted(24, "step"), counted(0, "row")
    ('1 row', '24 steps', '0 rows')
    """
    return f"{count} {word}{'' if count == 1 else 's'}"


def too_far(horizon: int, delay: int, rows: int) -> str | None:
    """What to say where forecasts reach behind the end of the source; None where they do not.

    >>> too_far(24, 0, 24) is None
    True
    >>> too_far(1, 50, 40)
    '--delay 50: ... 40 rows, so no target ever came, nothing was learned and no forecast could be judged; ...'
    """
    if horizon - 1 + delay < rows:
        return None
    named = [
        f"--{name} {value}" for name, value, usual in (("horizon", horizon, 1), ("delay", delay, 0)) if value > usual
    ]
    what = "no row could be forecast from so far away" if not delay else "no target ever came, nothing was learned"
    why = f"the source has {counted(rows, 'row')}, so {what} and no forecast could be judged"
    return f"{' and '.join(named)}: {why}; give a smaller number, or more rows."
