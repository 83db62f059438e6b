"""Timing, child processes and tables: what every case shares.

A case is a module with `run(process, quick) -> Result`. It is called in a process of its own, because XLA reads its
flags once, when JAX starts. Contestants take turns (a b c a b c ...), so that a busy minute of the machine falls on all
of them; a turn is one call to bring caches and threads back and one timed call.
"""

import importlib
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out"
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6}
PACKAGES = ("jax", "jaxlib", "numpy", "equinox", "dynamax", "filterpy", "river", "simdkalman", "statsmodels", "numba")


@dataclass
class Row:
    """One measured line: `seconds` is the warm median of one run, step or event; `low` and `high` its spread.

    Rows of one `group` do the same job with the same outputs; ratios are taken inside a group.
    """

    group: str
    name: str
    role: str  # ours, peer, bound or note; a note is shown but nothing is divided by it
    form: str
    dtype: str
    seconds: float
    low: float
    high: float
    unit: str = "ms"


@dataclass
class Bar:
    """A promise about a number: `value` should not exceed `limit`."""

    text: str
    value: float
    limit: float

    @property
    def met(self) -> bool:
        return self.value <= self.limit


@dataclass
class Result:
    """What a case hands back: rows, bars, the peers that were absent, and remarks on how it went."""

    rows: list[Row] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def seconds(self, name: str, group: str) -> float:
        """The median of a row; a bar is a quotient of two of these."""
        return next(row.seconds for row in self.rows if row.name == name and row.group == group)

    def peer(self, package: str):
        """The imported package, or None with its name noted under `skipped`."""
        try:
            return importlib.import_module(package)
        except ImportError:
            self.skipped.append(package.partition(".")[0])
            return None


def progress(message: str) -> None:
    """One line on stderr, so that stdout stays a clean table."""
    print(f"  ... {message}", file=sys.stderr, flush=True)


def alternate(
    contestants: dict[str, Callable[[], object]], repeats: int = 7, label: str = ""
) -> dict[str, list[float]]:
    """Seconds of every timed call; each contestant takes its turn `repeats` times.

    A contestant that takes more than half a second is not run twice a turn: its caches do not matter.

    >>> sorted(alternate({"a": lambda: None, "b": lambda: None}, repeats=5))
    ['a', 'b']
    """
    spoken = time.perf_counter()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(repeats + 1):
        for name, call in contestants.items():
            if time.perf_counter() - spoken > 2.0:
                spoken = time.perf_counter()
                progress(f"{label} {name}: " + ("warming up" if turn == 0 else f"run {turn} of {repeats}"))
            if turn == 0 or max(times[name], default=0.0) < 0.5:
                call()
            if turn:
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return times


def spread(times: list[float], per: float = 1.0) -> dict[str, float]:
    """Median, least and greatest of `times`, each divided by `per` (the steps or events in one run).

    >>> spread([3.0, 1.0, 2.0], per=10)
    {'seconds': 0.2, 'low': 0.1, 'high': 0.3}
    """
    return {"seconds": statistics.median(times) / per, "low": min(times) / per, "high": max(times) / per}


def machine() -> dict[str, object]:
    """Facts without which a time means nothing: processor, cores, load, versions."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    load = list(os.getloadavg()) if hasattr(os, "getloadavg") else None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": cpu, "cores": cores, "load": load, "python": platform.python_version(), "versions": versions}


def child(case: str, process: str, quick: bool) -> Result:
    """Run one case in a fresh interpreter. The answer comes back through a file, so that a case may print freely."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks.harness", case, process, str(answer)] + ["--quick"] * quick
        subprocess.run(command, cwd=ROOT, check=True)
        raw = json.loads(answer.read_text())
    return Result([Row(**r) for r in raw["rows"]], [Bar(**b) for b in raw["bars"]], raw["skipped"], raw["notes"])


def serve(arguments: list[str]) -> None:
    """The child's side of `child`."""
    case, process, answer = arguments[:3]
    if process == "tuned":
        importlib.import_module("filtax").tune_xla()
    result = importlib.import_module(f"benchmarks.{case}").run(process, "--quick" in arguments[3:])
    Path(answer).write_text(json.dumps(asdict(result)))


def table(result: Result) -> str:
    """Rows with their ratios to the fastest peer and the fastest bound of the same group, then the bars.

    >>> rows = [Row("job", "ours", "ours", "root", "float32", 2e-3, 2e-3, 2e-3)]
    >>> rows += [Row("job", "C", "bound", "covariance", "float32", 1e-3, 1e-3, 1e-3)]
    >>> print(table(Result(rows, [Bar("ours / C", 2.0, 3.0)])))
    job          form        dtype        median              low..high   / peer  / bound
      ours       root        float32     2.00 ms             2.00..2.00              2.00
      C          covariance  float32     1.00 ms             1.00..1.00              1.00
      bar: ours / C is 2, at most 3: met
    """
    width = max([len(row.name) for row in result.rows] + [5]) + 5
    lines = []
    for group in dict.fromkeys(row.group for row in result.rows):
        rows = [row for row in result.rows if row.group == group]
        head = f"{group:<{width + 2}} {'form':<11} {'dtype':<8} {'median':>10}"
        lines.append(head + f"{'low..high':>23}{'/ peer':>9}{'/ bound':>9}")
        best = {role: min((r.seconds for r in rows if r.role == role), default=None) for role in ("peer", "bound")}
        for row in rows:
            low, mid, high = (x * UNITS[row.unit] for x in (row.low, row.seconds, row.high))
            line = f"  {row.name:<{width}} {row.form:<11} {row.dtype:<8} {mid:>7.2f} {row.unit:<2}"
            line += f"{f'{low:.2f}..{high:.2f}':>23}"
            line += "".join(f"{row.seconds / b:>9.2f}" if b else " " * 9 for b in best.values())
            lines.append(line.rstrip())
    for bar in result.bars:
        verdict = "met" if bar.met else "MISSED"
        lines.append(f"  bar: {bar.text} is {bar.value:.3g}, at most {bar.limit:g}: {verdict}")
    lines += [f"  note: {note}" for note in result.notes]
    lines += [f"  skipped (not installed, or broken): {', '.join(result.skipped)}"] if result.skipped else []
    return "\n".join(lines)


if __name__ == "__main__":
    serve(sys.argv[1:])
