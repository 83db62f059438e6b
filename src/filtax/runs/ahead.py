"""The parts of a report that look ahead: what comes next, and how good the forecasts of each step were."""

import html
from typing import Any

import numpy as np

from filtax.runs.chart import chart, short
from filtax.runs.digest import Digest
from filtax.runs.outlook import next_steps, why_not
from filtax.runs.results import Run
from filtax.runs.steps import in_words

__all__ = ["coming", "step_by_step"]

BEFORE = 3  # horizons of readings that are drawn before the forecasts
LEAST = 48  # and readings at least
LISTED = 12  # steps that are listed


def coming(run: Run, told: Digest) -> str:
    """The next steps of the first series as a figure and a table; a sentence where they cannot be known."""
    if why_not(run) is not None:
        return ""
    said = next_steps(run)  # of one series after the other
    rows = {name: values[: len(values) // len(run.note["keys"])] for name, values in said.items()}
    time = rows[run.config.time or "time"]
    last = told.last[-max(LEAST, BEFORE * len(time)) :]
    ahead = time.astype("datetime64[us]").astype(np.int64) if time.dtype.kind == "M" else time
    x = np.concatenate([last["time"], ahead]).astype(np.float64)
    gap = lambda n: np.full(n, np.nan)  # noqa: E731
    start = np.concatenate([gap(len(last)), last["y"][-1:]])[1:]  # from where the forecasts leave
    after = lambda values: np.concatenate([start, values])  # noqa: E731
    lines = {"forecast": after(rows["forecast"]), "truth": np.concatenate([last["y"], gap(len(time))])}
    drawn = chart(x, lines, timed=told.timed, band=(after(rows["lower"]), after(rows["upper"])))
    names = ("step", "forecast", "lower", "upper")
    listed = np.unique(np.linspace(0, len(time) - 1, min(len(time), LISTED)).astype(int))
    head = "".join(f"<th>{name}</th>" for name in ("time", *names))
    table = "".join(
        f"<tr><td>{_when(time[i])}</td>" + "".join(f"<td>{short(float(rows[n][i]))}</td>" for n in names) + "</tr>"
        for i in listed
    )
    which = f" of {html.escape(run.note['keys'][0])}" if run.config.key else ""
    all_of = f" <code>filtax predict {html.escape(str(run.root))}</code> prints them" + (" for all." if which else ".")
    return (
        f"{drawn}<p>The forecasts{which} behind the last row, with {run.config.level:.0%} intervals.{all_of}</p>"
        f"<table><tr>{head}</tr>{table}</table>"
    )


def step_by_step(run: Run, steps: list[dict[str, Any]]) -> str:
    """Error and coverage by step, where more than one was forecast."""
    known = [each for each in steps if each["mae"] is not None]
    if not known:
        return ""
    x = np.array([each["step"] for each in known], np.float64)
    rivals = sorted(known[0]["baselines"], key=lambda name: sum(each["baselines"][name] for each in known))[:3]
    lines = {"this run": np.array([each["mae"] for each in known])}
    lines |= {name: np.array([each["baselines"][name] for each in known]) for name in rivals}
    inside = np.array([np.nan if each["coverage"] is None else each["coverage"] for each in known])
    held = chart(x, {"share inside": inside}, level=run.config.level, floor=0.0, ceiling=1.0)
    return (
        f"<p class=words>{html.escape(in_words(steps))}</p><h3>Mean absolute error by steps ahead</h3>"
        f"{chart(x, lines, floor=0.0)}<h3>Share of readings inside of the {run.config.level:.0%} interval</h3>{held}"
        "<p>Every step has a model and an interval of its own, which see nothing younger.</p>"
    )


def _when(moment: Any) -> str:
    return str(moment).removesuffix(".000000").replace("T", " ") if isinstance(moment, np.datetime64) else short(moment)
