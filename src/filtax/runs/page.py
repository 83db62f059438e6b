"""The report of a run: one file without addresses, for a screen, a phone and paper. What users named is escaped."""

import html
import shlex
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from filtax.beliefs import collapse
from filtax.io._files import write_whole
from filtax.report.page import page
from filtax.runs.ahead import coming, step_by_step
from filtax.runs.chart import bars, chart, short
from filtax.runs.config import CONFIG
from filtax.runs.digest import Digest, digest
from filtax.runs.distrust import distrusted_rows
from filtax.runs.listing import listing
from filtax.runs.missing import missing_in_words, missing_steps
from filtax.runs.results import Run, microseconds, verdict
from filtax.runs.style import CSS, SCRIPT
from filtax.runs.wording import counted

__all__ = ["command_of", "write_page"]

SHOWN = 25  # events of a kind that are listed
MARKED = 200  # changes that are marked
MOVED = 6  # weights whose drift is drawn


def write_page(run: Run, found: dict[str, Any]) -> Path:
    """Write report.html of a run.

    Args:
        run: The run.
        found: What `scores` returned.

    Returns:
        The path.
    """
    told = digest(run)
    title = f"{run.config.target} of {Path(run.config.source).name}"
    label = run.config.task == "classify"
    sections = [
        ("In short", _summary(run, found)),
        ("What comes next", coming(run, told)),
        ("Against the baselines", _table(run, found)),
        *([] if label else [("Forecast and truth", _forecasts(run, told))]),
        ("Error as it went", _errors(run, told)),
        ("Step by step", step_by_step(run, found.get("steps", []))),
        *([] if label else [("How honest the intervals are", _calibration(run, found, told))]),
        ("When the world changed", _changes(run, told)),
        ("Rows that were not trusted", distrusted_rows(run, SHOWN)),
        ("Rows that were left out", _left_out(run)),
        ("Steps that are missing", missing_steps(run, SHOWN)),
        ("What was learned", _learned(run)),
        ("How that drifted", _drift(run, told)),
        ("How to repeat it", _repeat(run)),
    ]
    body = "".join(f"<section><h2>{html.escape(name)}</h2>{text}</section>" for name, text in sections if text)
    text = page(title, CSS, f"<h1>{html.escape(title)}</h1>{body}<script>{SCRIPT}</script>")
    path = run.root / "report.html"
    write_whole(path, text.encode("utf-8", "backslashreplace"))
    return path


def command_of(run: Run) -> str:
    """The command that makes the same run.

    The answer is one line for a shell; names with blanks are quoted.
    """
    c = run.config
    words = ["filtax", "run", c.source, "--target", c.target]
    method = None if c.near else c.method  # by itself, a run takes two methods where it looks far ahead
    for name, value in (("--time", c.time), ("--key", c.key), ("--method", method)):
        words += [name, value] if value else []
    words += ["--features", ",".join(c.features)] if c.features is not None else []
    words += ["--task", c.task, "--horizon", str(c.horizon), "--delay", str(c.delay), "--on-bad", c.on_bad]
    words += [] if c.made else ["--no-features"]
    return shlex.join(words)


def _summary(run: Run, found: dict[str, Any]) -> str:
    progress, cost = run.note["progress"], microseconds(run)
    ahead = "" if run.config.horizon == 1 else f", {run.config.horizon} steps ahead"
    ahead += f", targets {run.config.delay} late" if run.config.delay else ""
    cards = [
        (f"{run.rows:,}", f"rows{ahead}"),
        *([(f"{progress['blank']:,}", "without a target")] if progress.get("blank") else []),
        (f"{progress['rejected']:,}", "left out"),
        (f"{progress['distrusted']:,}", "not trusted"),
        (f"{progress['changes']:,}", "change" if progress["changes"] == 1 else "changes"),
        *([(f"{progress['missing']:,}", "steps missing")] if progress.get("missing") else []),
    ]
    if found.get("coverage") is not None:
        cards.append((f"{found['coverage']:.1%}", f"inside of the {run.config.level:.0%} interval"))
    if cost is not None:
        cards.append((f"{1e6 / cost:,.0f}", "rows a second"))
    shown = "".join(f"<div><b>{html.escape(value)}</b>{html.escape(name)}</div>" for value, name in cards)
    unfinished = "" if run.note["done"] else "<p><strong>The run did not reach the end of its source.</strong></p>"
    words = " ".join([verdict(run, found)[1], missing_in_words(run)]).strip()
    return f'<div class="cards">{shown}</div>{unfinished}<p class="words">{html.escape(words)}</p>'


def _table(run: Run, found: dict[str, Any]) -> str:
    names = list(next(iter(found["table"].values())))
    head = "".join(f"<th>{name}</th>" for name in ("", *names))
    best = {
        name: (max if name == "accuracy" else min)(line[name] for line in found["table"].values()) for name in names
    }
    rows = "".join(
        f"<tr><td>{html.escape(who)}</td>"
        + "".join(f"<td{' class=best' if line[n] == best[n] else ''}>{short(line[n])}</td>" for n in names)
        + "</tr>"
        for who, line in found["table"].items()
    )
    unit = (
        "" if run.config.task == "classify" else f" In the unit of {html.escape(run.config.target)}; smaller is better."
    )
    on = counted(found["rows"], "row")
    return f"<table><tr>{head}</tr>{rows}</table><p>On {on} that all of them forecast.{unit}</p>"


def _forecasts(run: Run, told: Digest) -> str:
    means, last = told.means, told.last
    shown = {"forecast": means["forecast"], "truth": means["y"]}
    whole = chart(told.x, shown, timed=told.timed, band=(told.low, told.high))
    text = f"<h3>All rows</h3>{whole}<p>Averages of stretches of rows; the band spans the readings of each.</p>"
    if len(last) and run.config.time:
        x = last["time"].astype(np.float64)
    else:
        x = np.arange(run.rows - len(last), run.rows) + 1.0
    lines = {"forecast": last["forecast"], "truth": last["y"]}
    which = f" of {html.escape(run.note['keys'][0])}" if run.config.key else ""
    near = chart(x, lines, timed=told.timed, band=(last["lower"], last["upper"]))
    title = f"The last {counted(len(last), 'row')}{which}"
    return f"{text}<h3>{title}</h3>{near}<p>The band is the {run.config.level:.0%} interval.</p>"


def _errors(run: Run, told: Digest) -> str:
    means = told.means
    names = ("forecast", *run.rivals)
    order = sorted(run.rivals, key=lambda name: _average(means[f"error of {name}"]))
    shown = [name for name in names if name == "forecast" or name in order[:3]]
    lines = {("this run" if name == "forecast" else name): means[f"error of {name}"] for name in shown}
    what = "Share of wrong labels" if run.config.task == "classify" else "Mean absolute error"
    return chart(told.x, lines, timed=told.timed, floor=0.0) + f"<p>{what} over stretches of rows.</p>"


def _average(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float((known / known.size).sum()) if known.size else 0.0


def _calibration(run: Run, found: dict[str, Any], told: Digest) -> str:
    inside = chart(
        told.x, {"share inside": told.means["inside"]}, timed=told.timed, level=run.config.level, floor=0.0, ceiling=1.0
    )
    counts = found["pit"]
    pit = bars(counts, sum(counts) / len(counts), "histogram of the probability integral transform")
    return (
        f"<h3>Share of readings inside of the {run.config.level:.0%} interval</h3>{inside}"
        "<p>It is stretched by how often it was left before; the forecasts below are as the method makes them.</p>"
        f"<h3>Where readings fell in their forecasts</h3>{pit}"
        "<p>0 is far below the forecast, 1 far above. Level bars: the forecasts say how sure they are, and are right. "
        "High bars at both ends: too sure. A hill in the middle: not sure enough.</p>"
    )


def _changes(run: Run, told: Digest) -> str:
    if not run.stream.watches:
        return "<p>Changes are looked for one step ahead only, and where the target is known at once.</p>"
    found = list(deque((e for e in run.events() if e["event"] == "change"), MARKED))
    marks = [(_at(run, told, event), f"row {event['row']}, {event.get('time', '')}") for event in found]
    lines = {"change probability": told.changes}
    text = chart(told.x, lines, timed=told.timed, marks=marks, floor=0.0, ceiling=1.0)
    names = ("row", "line", "time", "key", "began")
    listed = listing(found[-SHOWN:], names, SHOWN, {"key": "series", "began": "began with row"}) if found else ""
    if len(found) > SHOWN:
        listed += f"<p>The latest {SHOWN} of {run.note['progress']['changes']:,}; all are in events.jsonl.</p>"
    why = (
        "Largest probability of each stretch that a new regime began; lines across are alarms, and there it is at "
        "least 1 less the rate of false alarms. A peak without a line was a suspicion of the method: the rows behind "
        "it did not bear it out, as after a gross error, or the change had been told of. What else gives an alarm: "
        "rows that kept falling outside of what was expected, a level that jumped and stayed, or averages, as of days, "
        "which show what no row does: a trend that bends, or a level or a week that became another one slowly."
    )
    return f"{text}<p>{why}</p>{listed or '<p>No alarm was given.</p>'}"


def _at(run: Run, told: Digest, event: dict[str, Any]) -> float:
    if told.timed:
        return float(np.datetime64(event["time"], "us").astype(np.int64))
    return float(event["time"]) if run.config.time else float(event["row"])


def _left_out(run: Run) -> str:
    """Rows that were left out, without those that were not complete when they were first read."""
    place = lambda event: (event["file"], event["line"])  # noqa: E731
    since = {place(event) for event in run.events() if event["event"] == "completed"}
    rows = (event for event in run.events() if event["event"] == "rejected" and place(event) not in since)
    return listing(rows, ("file", "line", "column", "reason"), SHOWN)


def _learned(run: Run) -> str:
    """The coefficients that are clearest, of the first series or label."""
    stream = run.stream
    hypotheses = stream.carry[0]
    one = collapse(_first(hypotheses.belief), hypotheses.log_weight[0])
    mean, sd = np.asarray(one.mean), np.sqrt(np.asarray(one.var))
    maker, names = getattr(stream, "maker", None), stream.columns
    order = np.argsort(-np.abs(mean) / np.maximum(sd, 1e-300))[:12]
    rows = "".join(
        f"<tr><td>{html.escape(names[i])}</td><td>{short(float(mean[i]))}</td><td>{short(float(sd[i]))}</td></tr>"
        for i in order
    )
    what = "the rest that the last value and last season's change leave" if maker else "the target, in its own units"
    what = "the log odds" if run.config.task == "classify" else what
    return (
        f"<p>{len(mean)} weights, of which these are clearest at the end. They say how much {what} moves with each "
        f"column, in units of its scale.</p><table><tr><th>column</th><th>weight</th><th>±</th></tr>{rows}</table>"
    )


def _drift(run: Run, told: Digest) -> str:
    """The weights that moved most since a tenth of the rows was learned."""
    trace = run.stream.trace
    late = trace.weights[trace.rows >= 0.1 * run.rows]
    if len(late) < 3:
        return "<p>The run is too short to show it.</p>"
    moved = np.ptp(late, axis=0)
    order = [i for i in np.argsort(-moved)[:MOVED] if moved[i] > 0.0]
    if not order:
        return "<p>No weight moved.</p>"
    ends = (np.arange(len(told.x)) + 1) * run.rows / len(told.x)
    known = np.isfinite(told.x)
    x = np.interp(trace.rows, ends[known], told.x[known])
    lines = {run.stream.columns[i]: trace.weights[:, i] for i in order}
    low, high = float(late[:, order].min()), float(late[:, order].max())
    slack = 0.1 * (high - low)
    drawn = chart(x, lines, timed=told.timed, floor=low - slack, ceiling=high + slack)
    return (
        f"{drawn}<p>The weights that moved most, in units of the scales of their columns; the first rows are cut.</p>"
    )


def _first(belief: Any) -> Any:
    import jax

    return jax.tree.map(lambda leaf: leaf[0], belief)


def _repeat(run: Run) -> str:
    text = (run.root / CONFIG).read_text(encoding="utf-8", errors="replace")
    return f"<pre>{html.escape(command_of(run))}</pre><p>config.toml:</p><pre>{html.escape(text)}</pre>"
