"""What a run leaves for people: the report, one file that fetches nothing. What users named is escaped."""

import heapq
import html
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from filtax.io._files import write_whole
from filtax.pipeline._config import CONFIG
from filtax.pipeline._figures import chart, short, stack
from filtax.pipeline._predict import next_steps
from filtax.pipeline._run import Run, open_run, write_predictions
from filtax.pipeline._scores import Scores, microseconds, own_name, scores, steps_in_words, verdict, write_metrics

SHOWN, DRAWN = 25, 8  # events of a kind that are listed, experts that are drawn
LAST = 336  # rows whose forecasts are drawn
BEFORE = 3  # horizons of readings that are drawn before the forecasts, and 48 at least
TITLES = {
    "change": "Changes",
    "outlier": "Outliers",
    "gap": "Missing steps",
    "rejected": "Rows that could not be read",
}
NAMES = {
    "change": ("row", "line", "time", "key", "began"),
    "outlier": ("row", "line", "time", "key", "tail"),
    "gap": ("missing", "row", "line", "time", "key"),
    "rejected": ("file", "line", "column", "reason"),
}

CSS = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem;
  color: #222; background: #fff; }
h1 { font-size: 1.7rem; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { border-top: 1px solid #ccc; padding-top: 1rem; margin-top: 2rem; font-size: 1.25rem; }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
p { color: #444; } .words { font-weight: 600; color: #111; overflow-wrap: anywhere; }
.cards { display: flex; flex-wrap: wrap; gap: .6rem; }
.cards div { border: 1px solid #ccc; border-radius: .4rem; padding: .4rem .9rem; font-size: .85rem; color: #555; }
.cards b { display: block; font-size: 1.35rem; color: #111; font-variant-numeric: tabular-nums; }
section { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9em; margin: .6rem 0; }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; min-width: 6rem; }
td.best { font-weight: 700; }
figure { margin: .3rem 0; } svg { width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: #555; }
.line { fill: none; stroke-width: 1.4; } .band { fill: #1a5fb4; opacity: .18; }
.grid { stroke: #e4e4e4; } .level { stroke: #c01c28; stroke-dasharray: 5 4; }
.mark { stroke: #c01c28; stroke-width: 1.5; } .pointer { stroke: #888; }
.keys { font-size: .85rem; min-height: 1.4em; } .keys span { margin-right: 1rem; display: inline-block; }
.keys i { display: inline-block; width: 1.1em; height: .3em; margin-right: .35em; vertical-align: middle; }
output { color: #111; font-variant-numeric: tabular-nums; }
pre { background: #f5f5f5; padding: .7rem; font-size: .82rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 600px) { svg text { font-size: 22px; } .line, .mark { stroke-width: 2.5; }
  svg .near { display: none; } table { font-size: .78em; } th, td { padding: .2rem .25rem; }
  th:first-child, td:first-child { min-width: 5rem; } }
@media print { body { max-width: none; font-size: 11pt; } section { overflow: visible; }
  figure, tr, .cards div { break-inside: avoid; } h2, h3 { break-after: avoid; } output { display: none; } }
"""
SCRIPT = """
document.querySelectorAll('figure.chart').forEach(function (figure) {
  var svg = figure.querySelector('svg'), said = figure.querySelector('output');
  var data = JSON.parse(figure.querySelector('script').textContent);
  var pointer = svg.appendChild(document.createElementNS('http://www.w3.org/2000/svg', 'line'));
  pointer.setAttribute('class', 'pointer'); pointer.setAttribute('y1', 0);
  svg.addEventListener('pointermove', function (event) {
    var box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal, span = data.span, plot = data.plot;
    var share = ((event.clientX - box.left) / box.width * view.width - plot[0]) / (plot[1] - plot[0]), best = -1;
    var at = span[0] + share * (span[1] - span[0]);
    data.x.forEach(function (value, i) {
      if (value !== null && (best < 0 || Math.abs(value - at) < Math.abs(data.x[best] - at))) best = i;
    });
    if (best < 0) return;
    var x = data.x[best], drawn = plot[0] + (x - span[0]) / (span[1] - span[0]) * (plot[1] - plot[0]);
    var when = data.timed ? new Date(x / 1000).toISOString().slice(0, 16).replace('T', ' ') : String(x);
    var names = Object.keys(data.lines).filter(function (name) { return data.lines[name][best] !== null; });
    said.textContent = when + '  ' + names.map(function (n) { return n + ' ' + data.lines[n][best]; }).join('  ');
    pointer.setAttribute('x1', drawn); pointer.setAttribute('x2', drawn); pointer.setAttribute('y2', view.height);
  });
});
"""


class Written(NamedTuple):
    """What was written, and what there is to say: a table, a sentence on it, what its columns are, the report."""

    table: str
    words: str
    about: str
    report: Path


def write_outputs(root: Path, warn: Callable[[str], object] | None = None) -> Written:
    r"""Write predictions.parquet, metrics.json and report.html of a run, each in one step.

    Args:
        root: Folder of the run.
        warn: As for `open_run`.

    Returns:
        A table of scores, a sentence on it, what its columns are, and the path of the report.

    Example:
        >>> import tempfile
        >>> from filtax.pipeline import Config, run_pipeline, write_outputs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "t.csv"
        ...     _ = path.write_text("y\n" + "".join(f"{t / 7}\n" for t in range(100)))
        ...     _ = run_pipeline(Config(str(path), "y"), Path(folder) / "run")
        ...     write_outputs(Path(folder) / "run").report.name
        'report.html'
    """
    run = open_run(root, warn)
    found = scores(run)
    write_predictions(run)
    write_metrics(run, found)
    table, words = verdict(run, found)
    about = "accuracy: share of labels forecast right; log_loss: minus the log of the probability of what came."
    if run.labels is None:
        about = f"mae, median, rmse: of the errors, in the unit of {run.config.target}."
        if found.coverage is not None:
            about += f" {found.coverage:.1%} of the targets lie inside of the {run.config.level:.0%} interval."
        about = f"{about} {steps_in_words(found.steps)}".strip()
    return Written(table, words, about, write_page(run, found))


def write_page(run: Run, found: Scores) -> Path:
    """Write report.html of a run."""
    title = f"{run.config.target} of {Path(run.config.source).name}"
    number = run.labels is None
    sections = [
        ("In short", _summary(run, found)),
        ("What comes next", _coming(run, found)),
        ("Against the baselines", _table(run, found)),
        ("Forecasts and targets", _last(run, found) if number else ""),
        ("How the error spreads over the keys", _keys(run, found)),
        ("Which experts carried the forecast", _experts(run)),
        ("Share of targets inside of the interval", _coverage(run, found) if number else ""),
        ("Errors", _errors(run, found)),
        *((TITLES[kind], _events(run, kind)) for kind in TITLES),
        ("How to repeat it", _repeat(run)),
    ]
    path = run.root / "report.html"
    write_whole(path, html_of(title, sections))
    return path


def html_of(title: str, sections: Iterable[tuple[str, str]]) -> bytes:
    """A page of sections; empty ones are omitted."""
    body = "".join(f"<section><h2>{html.escape(name)}</h2>{text}</section>" for name, text in sections if text)
    title = html.escape(title)
    text = (  # nothing is fetched, and it can be read on a phone
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{CSS}</style></head><body><h1>{title}</h1>{body}<script>{SCRIPT}</script>"
        "</body></html>"
    )
    return text.encode("utf-8", "backslashreplace")


def cards_of(cards: Iterable[tuple[str, str]]) -> str:
    """Numbers, each with what it is."""
    shown = "".join(f"<div><b>{html.escape(value)}</b>{html.escape(name)}</div>" for value, name in cards)
    return f'<div class="cards">{shown}</div>'


def listing(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """A table of rows; a column that all of them leave empty is omitted.

    >>> listing([{"row": 3, "key": "", "time": "2024-01-01T05:00"}], ("row", "key", "time"))
    '<table><tr><th>row</th><th>time</th></tr><tr><td>3</td><td>2024-01-01 05:00</td></tr></table>'
    """
    names = [name for name in names if any(row.get(name, "") not in ("", None) for row in rows)]

    def cell(name: str, value: Any) -> str:
        if isinstance(value, float):
            return short(value)
        return html.escape(str("-" if value is None else value).replace("T", " " if name == "time" else "T"))

    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = ["".join(f"<td>{cell(name, row.get(name, ''))}</td>" for name in names) for row in rows]
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def counted(count: int, word: str) -> str:
    """A number of things, one of them in the singular.

    >>> counted(1, "row"), counted(24, "step")
    ('1 row', '24 steps')
    """
    return f"{count} {word}{'' if count == 1 else 's'}"


def _summary(run: Run, found: Scores) -> str:
    progress, cost, c = run.note["progress"], microseconds(run), run.config
    ahead = "" if c.horizon == 1 else f", {c.horizon} steps ahead"
    ahead += f", targets {c.delay} rows late" if c.delay else ""
    cards = [(f"{run.rows:,}", f"rows{ahead}")]
    kinds = ("blank", "without a target"), ("rejected", "rejected"), ("outliers", "outliers"), ("changes", "changes")
    cards += [
        (f"{progress[name]:,}", words) for name, words in kinds if progress[name] or name not in ("blank", "rejected")
    ]
    cards += [(f"{progress['missing']:,}", "steps missing")] if progress["missing"] else []
    cards += [] if found.coverage is None else [(f"{found.coverage:.1%}", f"inside of the {c.level:.0%} interval")]
    cards += [] if cost is None else [(f"{1e6 / cost:,.0f}", "rows a second")]
    unfinished = "" if run.note["done"] else "<p><strong>The run did not reach the end of its source.</strong></p>"
    return f'{cards_of(cards)}{unfinished}<p class="words">{html.escape(verdict(run, found)[1])}</p>'


def _x(run: Run, records: np.ndarray) -> np.ndarray:
    return records["time"].astype(float) if run.config.time else records["row"] + 1.0


def _coming(run: Run, found: Scores) -> str:
    """The next steps of the first series."""
    if run.labels is not None or run.plan.width or not run.rows:
        return ""
    said, name = next_steps(run, run.keys[0]), run.config.time
    forecast, lower, upper = said["forecast"], said["lower"], said["upper"]
    last = run.latest(0, max(48, BEFORE * len(forecast)))
    times = said[name] if name else last["row"][-1] + 1.0 + said["step"]
    x = np.concatenate([_x(run, last), times.astype(float)])
    before, after = np.full(len(last), np.nan), np.full(len(forecast), np.nan)
    lines = {"forecast": np.concatenate([before, forecast]), "target": np.concatenate([last["y"], after])}
    lines["forecast"][len(last) - 1] = last["y"][-1]  # from where the forecasts leave
    edges = tuple(np.concatenate([before[1:], last["y"][-1:], each]) for each in (lower, upper))
    drawn = chart(x, lines, timed=run.plan.dated, band=(edges[0], edges[1]))
    at = np.unique(np.linspace(0, len(forecast) - 1, min(len(forecast), 12)).astype(int)).tolist()
    rows = [{"step": i + 1, "forecast": forecast[i], "lower": lower[i], "upper": upper[i]} for i in at]
    if name:
        rows = [{"time": str(times[i]).removesuffix(".000000"), **row} for i, row in zip(at, rows, strict=True)]
    command = f"<code>filtax predict {html.escape(str(run.root))}</code>"
    words = f"<p>Forecasts{_first(run)} with {run.config.level:.0%} intervals; {command} prints all of them.</p>"
    return drawn + words + listing(rows, ("time", "step", "forecast", "lower", "upper"))


def _first(run: Run) -> str:
    """Which series is shown, where there are several."""
    return f" of {html.escape(run.keys[0])}" if run.config.key else ""


def _table(run: Run, found: Scores) -> str:
    rows = [{"": who, **line} for who, line in found.table.items()]
    unit = "" if run.labels else f" In the unit of {html.escape(run.config.target)}; smaller is better."
    return listing(rows, list(rows[0])) + f"<p>On {counted(found.rows, 'row')} that all of them forecast.{unit}</p>"


def _some_keys(found: Scores) -> dict[str, dict[str, Any]]:
    """The keys with the least, the median and the largest error."""
    last = len(found.keys) - 1
    places = {0: "best", (last + 1) // 2: "median", last: "worst"}
    return {title: found.keys[place] for place, title in places.items()}


def _keys(run: Run, found: Scores) -> str:
    """How the error spreads over the keys."""
    if len(found.keys) < 2:
        return ""
    own, *rivals = found.table
    errors = np.array([each[own] for each in found.keys])
    beaten = sum(each[own] < min(each[name] for name in rivals) for each in found.keys)
    low, high = np.quantile(errors, (0.25, 0.75))
    rows = [{"": title, **each} for title, each in _some_keys(found).items()]
    words = (
        f"<p>Mean absolute error of {counted(len(found.keys), 'key')}: half of them lie between {short(low)} and "
        f"{short(high)}; {beaten} have one below that of every baseline.</p>"
    )
    return listing(rows, ("", "key", "rows", *found.table)) + words


def _last(run: Run, found: Scores) -> str:
    """Forecasts and targets of the last rows; with keys, of the best, the median and the worst one."""
    shown = _some_keys(found) if found.keys else {"": {"series": 0, "key": run.keys[0]}}
    drawn = []
    for title, each in shown.items():
        last = run.latest(each["series"], LAST)
        lines, band = {"forecast": last["forecast"], "target": last["y"]}, (last["lower"], last["upper"])
        head = f"<h3>{html.escape(each['key'])}, the {title} key</h3>" if title else ""
        drawn.append(head + chart(_x(run, last), lines, timed=run.plan.dated, band=band))
    words = f"The last rows, {LAST} at most; the band is the {run.config.level:.0%} interval."
    return "".join(drawn) + f"<p>{words}</p>"


def _experts(run: Run) -> str:
    """Weights of the experts over time, those with the largest ones, and all others together."""
    trace = run.learner.trace
    weights = np.nan_to_num(trace.weights)
    if len(weights) < 2:
        return ""
    order = np.argsort(-weights.mean(axis=0), kind="stable")
    layers = {trace.names[i]: weights[:, i] for i in order[:DRAWN]}
    if len(order) > DRAWN:
        layers["others"] = weights[:, order[DRAWN:]].sum(axis=1)
    step = "" if run.config.horizon == 1 else " of the first step"
    words = f"Weights{step} by rows{_first(run)}; the forecast is their mixture."
    return f"{stack(trace.rows + 1.0, layers)}<p>{words}</p>"


def _coverage(run: Run, found: Scores) -> str:
    if found.coverage is None:
        return ""
    drawn, inside = "", np.array([each["coverage"] for each in found.steps])
    if len(inside) > 1:
        x = np.array([each["step"] for each in found.steps], float)
        drawn = chart(x, {"share inside, by steps ahead": inside}, level=run.config.level, floor=0.5, ceiling=1.0)
    return f"{drawn}<p>{found.coverage:.1%} of all targets, where {run.config.level:.0%} is wanted.</p>"


def _errors(run: Run, found: Scores) -> str:
    what = "Share of wrong labels" if run.labels else "Mean absolute error"
    course = chart(found.x, found.course, timed=run.plan.dated, floor=0.0)
    text = f"<h3>{what} over time</h3>{course}"
    known = [each for each in found.steps if each["rows"]]
    if len(known) > 1:
        lines = {own_name(run): np.array([each["mae"] for each in known])}
        lines |= {name: np.array([each["baselines"][name] for each in known]) for name in known[0]["baselines"]}
        drawn = chart(np.array([each["step"] for each in known], float), lines, floor=0.0)
        text += f"<h3>{what} by steps ahead</h3>{drawn}<p>{html.escape(steps_in_words(found.steps))}</p>"
    return text


def _events(run: Run, kind: str) -> str:
    """The latest events of a kind; of gaps the longest ones, of rejected rows the first."""
    found = (event for event in run.events() if event["event"] == kind)
    if kind == "gap":
        shown = heapq.nlargest(SHOWN, found, key=lambda event: event["missing"])
    elif kind == "rejected":
        shown = [event for event, _ in zip(found, range(SHOWN), strict=False)]
    else:
        shown = heapq.nlargest(SHOWN, found, key=lambda event: event["row"])
    if not shown:
        return "" if kind in ("gap", "rejected") else "<p>None.</p>"
    count = {"change": "changes", "outlier": "outliers", "gap": "gaps", "rejected": "rejected"}[kind]
    total = run.note["progress"][count]
    more = f"<p>{SHOWN} of {total:,}; all are in events.jsonl.</p>" if total > SHOWN else ""
    return listing(shown, NAMES[kind]) + more


def _repeat(run: Run) -> str:
    c = run.config
    words = ["filtax", "run", c.source, "--target", c.target]
    given = {"--time": c.time, "--key": c.key, "--method": c.method, "--season": c.season, "--task": c.task}
    given |= {"--features": None if c.features is None else ",".join(c.features)}
    given |= {"--horizon": c.horizon if c.horizon > 1 else None, "--delay": c.delay or None, "--on-error": c.on_error}
    words += [str(word) for name, value in given.items() if value is not None for word in (name, value)]
    text = (run.root / CONFIG).read_text(encoding="utf-8", errors="replace")
    return f"<pre>{html.escape(shlex.join(words))}</pre><p>config.toml:</p><pre>{html.escape(text)}</pre>"
