"""`filtax reproduce`: run experiments of the thesis, and write what they found."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from filtax.cli._shared import BAD_INPUT, LARGEST_SEED, print_table, start_jax, talk


def reproduce(
    names: Annotated[list[str], typer.Argument(help="Experiments by name; `all`; or `list` to see them.")],
    full: Annotated[bool, typer.Option("--full/--quick", help="The thesis's size, or minutes in all.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Another number, other data.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes that share the work.")] = 1,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for results and figures.")] = Path("out/reproduce"),
) -> None:
    """Run experiments of the thesis: figures, tables, and a verdict on each claim.

    What was found before with the same setting is used again, and of an experiment that was interrupted the parts
    that were done. Writes quick/NAME or full/NAME for each experiment, with result.json and its figures, so that a
    quick run leaves a full one alone (with another seed: full-seed-3/NAME); and report.html, of all that lie there.
    An experiment whose data are absent or damaged is skipped, which is said first, and the exit code is then 2.
    """
    _find_thesis()
    from thesis import find, gather, write_report
    from thesis import names as all_names

    known = all_names()
    if names == ["list"]:
        claims = {name: ", ".join(str(claim.number) for claim in find(name).claims) for name in known}
        titles = [(name, find(name).title, claims[name]) for name in known]
        print_table([("name", "experiment", "claims"), *titles])
        return
    chosen = list(dict.fromkeys(known if names == ["all"] else names))
    for name in chosen:
        find(name)  # a wrong name is refused before any work
    report = out / "report.html"
    if report.exists() and "<title>filtax reproduce</title>" not in report.read_text(errors="replace"):
        raise ValueError(f"{report} is there already, and no reproduction wrote it; name another --out.")
    start_jax()
    out.mkdir(parents=True, exist_ok=True)
    size = "full" if full else "quick"
    possible = [name for name in chosen if not _cannot_run(name, size, seed, out)]
    try:
        if possible:
            _show(_run(possible, size, seed, jobs, out), size, seed)
    finally:  # also of what was done before an interruption or a fault
        if findings := gather(out):
            talk(f"Report: {write_report(findings, report)}")
    if possible != chosen:
        raise typer.Exit(BAD_INPUT)


def _find_thesis() -> None:
    """Make the package `thesis` importable: it stands beside the source tree, and is not in the wheel."""
    root = Path(__file__).parents[3]
    if (root / "thesis" / "__init__.py").is_file() and str(root) not in sys.path:
        sys.path.insert(0, str(root))
    if find_spec("thesis") is None:
        raise ModuleNotFoundError(
            "the experiments are not in the installed package; get the repository or the source distribution of filtax "
            "and run `python -m filtax reproduce` in its folder"
        )


def _show(findings: list[Any], size: str, seed: int) -> None:
    claims = [(f["name"], claim["number"], claim["verdict"], claim["text"]) for f in findings for claim in f["claims"]]
    if claims:
        print_table([("experiment", "claim", "verdict", ""), *claims])
    talk(f"Found at the {size} size, seed {seed}, in {findings[0].folder.parent}.")


def _cannot_run(name: str, size: str, seed: int, out: Path) -> bool:
    """Whether an experiment cannot run, which is said: a set it reads is absent or damaged, and it was not run before.

    What is public is fetched here, before any work.
    """
    from filtax.datasets import DamagedDatasetError, find_dataset
    from thesis import find

    experiment, problems = find(name), []
    if not _done(name, size, seed, out):
        for data in experiment.data:
            try:
                find_dataset(data)
            except (DamagedDatasetError, FileNotFoundError) as problem:
                problems.append((data, str(problem)))
    if problems:
        others = ", ".join(data for data, _ in problems[1:])
        more = f" So it is with {others}: `filtax data list` has all files." if others else ""
        talk(f"filtax: {name} is skipped: {problems[0][1]}{more}")
    return bool(problems)


def _done(name: str, size: str, seed: int, out: Path) -> bool:
    """Whether its numbers are there; figures that were lost are drawn of them."""
    from thesis import find, folder_of, stored

    return stored(folder_of(out, name, size, seed), find(name), size, seed) is not None


def _run(chosen: list[str], size: str, seed: int, jobs: int, out: Path) -> list[Any]:
    """Run them with bars."""
    from filtax.report import progress
    from thesis import expected_seconds
    from thesis import reproduce as reproduce_all

    expected = {name: 0.0 if _done(name, size, seed, out) else expected_seconds(name, size) / jobs for name in chosen}
    done = dict.fromkeys(chosen, 0)
    with progress(chosen, 100, unit="%", expected=expected if len(expected) > 1 else None) as advance:

        def told(name: str, share: float) -> None:
            steps = round(100 * share) - done[name]
            done[name] += steps
            advance(name, steps)

        try:
            return reproduce_all(chosen, size, seed, out, told, jobs)
        except KeyboardInterrupt:
            talk("Interrupted; the same command goes on after what is done.")
            raise
