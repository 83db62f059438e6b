"""Run the benchmarks: ours, the peers and the bounds side by side, with their ratios.

    python benchmarks/run.py [CASE ...] [--quick] [--json out/bench.json]

Missed bars are printed, not raised: times on a shared machine move by half. The exit status is 1 when a case failed.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # so that the file also runs as a script

from benchmarks.harness import OUT, child, machine, table  # noqa: E402

# The processes of each case: `tuned` turns on XLA's small-loop option before JAX starts.
CASES = {
    "tracking": ("plain", "tuned"),
    "ekf_mlp": ("plain",),
    "events": ("plain", "tuned"),
    "robust": ("plain", "tuned"),
    "changes": ("plain", "tuned"),
    "scalable": ("plain",),
    "complexity": ("plain",),
    "scaling": ("plain",),
    "variational": ("plain",),
    "startup": ("plain",),
    "table": ("plain",),
}
TITLES = {
    "tracking": "2-D tracking, 500 trials x 1000 steps, whole run",
    "ekf_mlp": "extended Kalman filter on a network with one output, one step",
    "events": "one event at a time from Python, result read back, one event",
    "robust": "2-D tracking with outliers in mind, 500 trials x 1000 steps, whole run",
    "changes": "run lengths",
    "scalable": "LoFi on a network with ten outputs, one step",
    "complexity": "exponents in the states D and the inner iterations I, one step",
    "scaling": "exponents in the parameters D, the dimension d and the outputs O, one step",
    "variational": "R-VGA by samples on a network of 81 parameters, one step",
    "startup": "new process",
    "table": "a table of a user, from CSV to predictions on disk, whole run",
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Speed of filtax beside its peers and the machine's bounds.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"cases to run: {', '.join(CASES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that everything runs, not how fast")
    parser.add_argument("--json", type=Path, default=OUT / "bench.json", help="where the numbers go")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}; choose from {', '.join(CASES)}")
    facts = machine()
    print(f"{facts['cpu']}, {facts['cores']} cores, load {facts['load']}, jax {facts['versions']['jax']}", flush=True)
    report, failed = {"machine": facts, "quick": options.quick, "cases": {}}, []
    for name in options.names or CASES:
        for process in CASES[name]:
            start = time.perf_counter()
            try:
                result = child(name, process, options.quick)
            except subprocess.CalledProcessError as error:
                failed.append(f"{name} ({process})")
                print(
                    f"\n{name} ({process}) failed with status {error.returncode}; its own words are above.", flush=True
                )
                continue
            took = time.perf_counter() - start
            print(f"\n== {TITLES[name]} | {process} process | {took:.0f} s\n{table(result)}", flush=True)
            report["cases"][f"{name}-{process}"] = asdict(result) | {"took": took}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=1))
    verdict(report, failed)
    print(f"numbers: {options.json}")
    return 1 if failed else 0


def verdict(report: dict, failed: list[str]) -> None:
    """The last lines: how many bars hold, and which do not."""
    bars = [bar for case in report["cases"].values() for bar in case["bars"]]
    missed = [bar for bar in bars if bar["value"] > bar["limit"]]
    print(
        f"\n{len(bars) - len(missed)} of {len(bars)} bars met" + (" (quick sizes: they mean little)" * report["quick"])
    )
    for bar in missed:
        print(f"  missed: {bar['text']} is {bar['value']:.3g}, at most {bar['limit']:g}")
    for name in failed:
        print(f"  failed: {name}")


if __name__ == "__main__":
    raise SystemExit(main())
