"""Segmentation on the Turing Change Point Dataset, beside the published defaults: `python -m benchmarks.tcpd`.

One default for all series. Looking back: a series is brought to mean 0 and variance 1 as a whole, as in the benchmark.
Online: nothing looks ahead, an alarm stays given, and what is scored is the start that it named. The set `real`
is that of the published averages: univariate, without quality_control_1..5 and uk_coal_employ.

    python -m benchmarks.tcpd [--neighbours] [--json out/tcpd.json]

`--neighbours` halves and doubles each number of the default and takes the median.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

# default F1 and covering of the set `real`, and of the four multivariate series; van den Burg and Williams (2020)
PUBLISHED = {
    "no change": ((0.645, 0.566), (0.577, 0.464)),
    "BOCPD": ((0.662, 0.594), (0.610, 0.455)),
    "PELT": ((0.674, 0.652), None),
    "binary segmentation": ((0.698, 0.672), None),
}
NUMBERS = ("hazard", "shape", "noise", "precision", "unit")
TASKS = ("marginals", "best", "online")


@dataclass(frozen=True, eq=False)
class Series:
    name: str
    y: np.ndarray
    told: dict[str, list[int]]

    @property
    def real(self) -> bool:
        made = self.name.startswith("quality_control") or self.name == "uk_coal_employ"
        return self.y.shape[1] == 1 and not made


def load(folder: Path) -> list[Series]:
    told = json.loads((folder / "annotations.json").read_text())
    series = []
    for path in sorted(folder.glob("series*/*.json"), key=lambda path: path.stem):
        columns = [column["raw"] for column in json.loads(path.read_text())["series"]]
        y = np.array([[np.nan if v is None else v for v in column] for column in columns], float).T
        series.append(Series(path.stem, y, told[path.stem]))
    return series


def judge(series: Series, retrospective, online) -> dict:
    """Scores of one series: (F1, covering) for each task, and how the alarms came."""
    from filtax.evaluate import covering, detection_delays, f1
    from filtax.segmentation import detect, segment

    score = lambda found: (f1(series.told, found), covering(series.told, found, len(series.y)))
    back, alarms = segment(series.y, settings=retrospective), detect(series.y, settings=online)
    delays = detection_delays(series.told, alarms.times, alarms.starts)
    scores = [score(found) for found in (back.changes, back.best, alarms.starts)]
    return {
        **dict(zip(TASKS, scores, strict=True)),
        "no change": score([]),
        "found": [len(back.changes), len(back.best), len(alarms.starts)],
        "period": back.period,
        "delays": list(delays.values()),
        "waits": alarms.delays,
    }


def averages(results: dict[str, dict], names: list[str]) -> dict[str, list[float]]:
    return {task: np.mean([results[name][task] for name in names], axis=0).tolist() for task in (*TASKS, "no change")}


def table(series: list[Series], results: dict[str, dict]) -> str:
    heads = "  ".join(f"{head:>11}" for head in ("no change", *TASKS))
    lines = [f"{'F1 / covering':22}{'T':>5}  {heads}     found  cycle"]
    pair = lambda scores: f"{scores[0]:.3f}/{scores[1]:.3f}"
    for one in series:
        row = results[one.name]
        cells = "  ".join(f"{pair(row[task]):>11}" for task in ("no change", *TASKS))
        cycle = "" if row["period"] is None else f"{row['period']:.1f}"
        found = "{}/{}/{}".format(*row["found"])
        mark = "" if one.real else " *"
        lines.append(f"{one.name + mark:22}{len(one.y):5}  {cells}  {found:>8}  {cycle}")
    sets = {
        "real, 32": [one.name for one in series if one.real],
        "all univariate, 38": [one.name for one in series if one.y.shape[1] == 1],
        "made, 5 (held out)": [one.name for one in series if one.name.startswith("quality_control")],
        "multivariate, 4 (held out)": [one.name for one in series if one.y.shape[1] > 1],
    }
    lines.append("")
    for title, names in sets.items():
        mean = averages(results, names)
        lines.append(f"{title:27}  " + "  ".join(f"{pair(mean[task]):>11}" for task in ("no change", *TASKS)))
    lines += ["", "published defaults            real, 32   multivariate"]
    for name, (real, several) in PUBLISHED.items():
        lines.append(f"  {name:24}{pair(real):>14}{pair(several) if several else '':>15}")
    reals = [results[name] for name in sets["real, 32"]]
    for title, key in (("told change to alarm", "delays"), ("named start to alarm", "waits")):
        steps = np.concatenate([np.array(row[key], float) for row in reals])
        median, most = np.median(steps), np.quantile(steps, 0.9)
        lines.append(f"{title}: median {median:.0f}, 90 % {most:.0f} steps, {len(steps)} of them")
    return "\n".join(lines)


def neighbours(series: list[Series], say=print) -> dict[str, dict]:
    """The averages over `real` with each number halved and doubled; their median, and the least of each."""
    from filtax.segmentation import ONLINE, RETROSPECTIVE

    rows = {}
    for name, factor in [(NUMBERS[0], 1.0), *((name, factor) for name in NUMBERS for factor in (0.5, 2.0))]:
        plans = [replace(plan, **{name: factor * getattr(plan, name)}) for plan in (RETROSPECTIVE, ONLINE)]
        results = {one.name: judge(one, *plans) for one in series if one.real}
        title = "default" if factor == 1.0 else f"{name} x {factor}"
        rows[title] = averages(results, list(results))
        say(line(title, rows[title]))
    summary = {}
    for title, statistic in (("median", np.median), ("least", np.min)):
        summary[title] = {task: statistic([row[task] for row in rows.values()], axis=0).tolist() for task in TASKS}
        say(line(title, summary[title]))
    return rows | summary


def line(title: str, row: dict) -> str:
    return f"{title:16}" + "  ".join("{:.3f}/{:.3f}".format(*row[task]) for task in TASKS)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tcpd", description=__doc__.splitlines()[0])
    parser.add_argument("--neighbours", action="store_true", help="halve and double each number of the default")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    given = parser.parse_args(arguments)
    folder = Path(os.environ.get("FILTAX_DATA", "absent")) / "tcpd"
    if not folder.is_dir():
        print("tcpd: no data; name the folder that holds tcpd/ in FILTAX_DATA.", file=sys.stderr)
        return 1
    import jax

    jax.config.update("jax_enable_x64", True)
    from filtax.segmentation import ONLINE, RETROSPECTIVE

    began, series = time.perf_counter(), load(folder)
    results = {one.name: judge(one, RETROSPECTIVE, ONLINE) for one in series}
    print(table(series, results))
    print(f"{time.perf_counter() - began:.0f} s, compilation included; * not in the published averages")
    out = {"settings": {"retrospective": asdict(RETROSPECTIVE), "online": asdict(ONLINE)}, "series": results}
    if given.neighbours:
        print(f"\n{'each number':16}{'marginals':13}{'best':13}online (real, 32)")
        out["neighbours"] = neighbours(series)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(out, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
