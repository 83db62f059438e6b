"""`filtax reproduce`: run experiments of the thesis, and write what they found."""

from pathlib import Path
from typing import Annotated, Any

import typer

from filtax.commands.outcome import BAD_INPUT
from filtax.commands.talk import print_table, start_jax, talk

__all__ = ["reproduce"]


def reproduce(
    names: Annotated[list[str], typer.Argument(help="Experiments by name; `all`; or `list` to see them.")],
    full: Annotated[bool, typer.Option("--full/--quick", help="The thesis's size, or minutes in all.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another number, other data.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 1,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for results and figures.")] = Path("out/reproduce"),
) -> None:
    """Run experiments of the thesis: figures, tables, and a verdict on each claim.

    What was found before with the same setting is used again, and of an experiment that was interrupted the parts
    that were done. Writes quick/NAME or full/NAME for each experiment, with result.json and its figures, so that a
    quick run leaves a full one alone (with another seed: full-seed-3/NAME); and report.html, of all that lie there.
    """
    from filtax import experiments

    known = experiments.names()
    if names == ["list"]:
        titles = [(name, experiments.find(name).title, _numbers(name)) for name in known]
        print_table([("name", "experiment", "claims"), *titles])
        return
    chosen = list(known) if names == ["all"] else names
    try:
        for name in chosen:
            experiments.find(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'NAMES'") from None

    start_jax()
    from filtax.experiments.page import write_report

    out.mkdir(parents=True, exist_ok=True)
    size = "full" if full else "quick"
    findings = _run(chosen, size, seed, jobs, out)
    claims = [(f["name"], claim["number"], claim["verdict"], claim["text"]) for f in findings for claim in f["claims"]]
    if claims:
        print_table([("experiment", "claim", "verdict", ""), *claims])
    talk(f"Found at the {size} size, seed {seed}, in {findings[0].folder.parent}.")
    talk(f"Report: {write_report(experiments.gather(out), out / 'report.html')}")


def _run(chosen: list[str], size: str, seed: int, jobs: int, out: Path) -> list[Any]:
    """Run them with bars."""
    from filtax import experiments
    from filtax.experiments.findings import current, digest_of, folder_of
    from filtax.experiments.registry import expected_seconds
    from filtax.report import progress
    from filtax.streams.datasets import DamagedDatasetError

    there = [current(folder_of(out, n, size, seed), digest_of(experiments.find(n), size, seed)) for n in chosen]
    expected = {
        name: 0.0 if found else expected_seconds(name, size) / jobs for name, found in zip(chosen, there, strict=True)
    }
    done = dict.fromkeys(chosen, 0)
    with progress(chosen, 100, unit="%", expected=expected if len(expected) > 1 else None) as advance:

        def told(name: str, share: float) -> None:
            steps = round(100 * share) - done[name]
            done[name] += steps
            advance(name, steps)

        try:
            return experiments.reproduce(chosen, size, seed, out, told, jobs)
        except (DamagedDatasetError, FileNotFoundError) as problem:  # the user's to mend, not ours
            talk(f"filtax: {problem}")
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            talk("Interrupted; the same command goes on after what is done.")
            raise


def _numbers(name: str) -> str:
    from filtax.experiments import find

    return ", ".join(str(claim.number) for claim in find(name).claims)
