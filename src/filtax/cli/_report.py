"""Commands that print what is there: `report`, `compare`, `predict` of runs; `doctor`, `data`, `methods`, `bandit`."""

import glob
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from filtax.cli._shared import LARGEST_SEED, print_table, start_jax, talk

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]


def report(folder: Folder) -> None:
    """Write the predictions, the scores and the report of a run again, up to its latest checkpoint."""
    start_jax()
    from filtax.pipeline import Config, write_outputs

    if Config.read(folder).task == "segment":
        from filtax.cli._run import show_segments
        from filtax.pipeline._segments import open_segments

        return show_segments(folder, open_segments(folder, warn=talk))
    written = write_outputs(folder, warn=talk)
    print(f"{written.table}\n{written.words}")
    talk(f"{written.about}\nReport: {written.report}")


def compare(folders: Annotated[list[Path], typer.Argument(help="Folders of runs.")]) -> None:
    """Print the scores of runs side by side, with the best baseline of each, and say which run is best.

    Runs on other rows, another target or another horizon are no match for each other, and it says so.
    """
    start_jax()
    from filtax.pipeline._scores import compare_runs

    rows, words = compare_runs(folders, warn=talk)
    print_table(rows)
    for sentence in words:
        print(sentence)


def predict(
    folder: Folder,
    source: Annotated[
        str | None, typer.Argument(help="Rows to forecast: a table, a pattern, or - for stdin.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the forecasts, .csv or .parquet; standard output by default.")
    ] = None,
    on_error: Annotated[
        str, typer.Option(help="reject: skip rows that cannot be read; stop: end at the first.")
    ] = "reject",
) -> None:
    """Forecast the rows of a table with what a run has learned. The run stays as it is.

    The table needs the columns that the run learned from, not the target. One line is printed for each row: its line,
    key and time, the target if it is there, the forecast and the interval; for labels the probability of each.

    A run with --time forecasts rows that lie behind its end; earlier rows are skipped. It looks as far ahead as its
    --horizon: a row further than that behind the last known target has an empty forecast. A target in the table serves
    the forecasts of later rows. Without a table it forecasts the next steps, as many as its --horizon.

    Exit codes: 0 done; 2 the table cannot be read; 3 there is no run, or its checkpoint is damaged; 4 not written.
    """
    if out is not None and out.suffix not in (".csv", ".parquet"):
        given = f"it ends with {out.suffix}" if out.suffix else "it has no ending"
        raise ValueError(f"--out {out}: {given}; forecasts are written as .csv or .parquet.")
    if out is not None and (folder.resolve() in out.resolve().parents or (source and out.resolve() in _files(source))):
        raise ValueError(f"--out {out}: it is the table, or lies in the folder of the run; name another file.")
    start_jax()
    from filtax.pipeline._page import counted
    from filtax.pipeline._predict import Prediction, next_steps
    from filtax.pipeline._run import open_run, write_csv, write_table

    run = open_run(folder, warn=talk)
    if source is None:
        columns = next_steps(run)
        write_csv(columns, sys.stdout, True) if out is None else write_table([columns], out)
    else:
        said = Prediction(run, source, on_error)
        with closing(said.table):  # also where nothing can be written
            if out is not None:
                write_table(said, out)
            else:
                for number, columns in enumerate(said):
                    write_csv(columns, sys.stdout, number == 0)
        if not said.rows:
            all_of = "its only row lies" if said.early == 1 else f"all {said.early} rows lie"
            why = f"; the first that was rejected: {said.first}" if said.first else ""
            before = f"{all_of} before the end of the run; give it later ones"
            raise ValueError(f"{source}: {before if said.early else 'not one row could be read' + why}.")
        words = f"{counted(said.rows, 'row')}, {said.blank} of them without a forecast; {said.rejected} rejected"
        talk(f"{words}; {said.early} were not behind the end of the run." if said.early else f"{words}.")
        if said.blank and run.config.time:
            far = counted(run.config.horizon, "step")
            talk(f"The run looks {far} ahead; make one with a longer --horizon for more.")
    if out is not None:
        talk(f"Forecasts: {out}")


def doctor() -> None:
    """Print versions, device and cache, and learn a small series whose answer is known; exits 1 if it is not found."""
    start_jax()
    from filtax.pipeline._health import checked

    well = True
    for name, found, good in checked():
        print(f"{'ok ' if good else 'BAD'}  {name:<12} {found}", flush=True)
        well = well and good
    if not well:
        raise typer.Exit(1)


def data(
    what: Annotated[str, typer.Argument(metavar="[list]", help="What to do; there is nothing else.")] = "list",
) -> None:
    """List the public data sets that experiments and examples read: where they are, their licence, what they are.

    A set is looked for in $FILTAX_DATA, then in the user's cache, and checked; one marked public is fetched when it is
    first read. Below stand the files to bring of those marked absent, and what is wrong with those marked damaged.
    """
    if what != "list":
        raise ValueError(f"{what!r} was given, expected `list` or nothing.")
    from filtax.datasets import DATASETS, data_homes, missing_files, whereabouts

    where = {name: whereabouts(name) for name in DATASETS}
    rows = [(name, where[name], one.licence, one.about, one.origin) for name, one in DATASETS.items()]
    print_table([("name", "where", "licence", "what", "from"), *rows])
    for name in (name for name, place in where.items() if place == "damaged"):
        print(f"\n{_damage(name)}")
    if "public" in where.values():
        print(f"\nWhat is public is fetched into {data_homes()[-1]} when it is first read.")
    if absent := [name for name, place in where.items() if place == "absent"]:
        files = {file: known.described for name in absent for file, known in DATASETS[name].files.items()}
        folders = " or ".join(str(home) for home in data_homes())
        hint = "" if data_homes()[1:] else ", or into a folder that FILTAX_DATA names"
        print(f"\nWhat is absent was made from what stands under `from`. Bring these files into {folders}{hint}.")
        print(
            "A table, or arrays, that you make yourself will do, if the numbers are the same in every bit of float64:"
        )
        wanted = [(name, file, digest) for name in absent for file, digest in missing_files(name).items()]
        print_table([("name", "file", "sha256"), *wanted])
        print()
        print_table([("name", "how it was made"), *((name, DATASETS[name].how) for name in absent)])
        print()
        print_table([("file", "what it holds"), *((file, words) for file, words in files.items() if words)])


def methods(
    name: Annotated[
        str | None, typer.Argument(help="A published method, or a name made of parts, to see them.")
    ] = None,
) -> None:
    """List the parts that a method's name is made of, and the published methods that are made of them.

    A name reads POSTERIOR+AUXILIARY[K]-PRIOR, such as "LG+C-ACI(q=0.01)" or "LG+RL[10]-PR(hazard=0.01)".
    """
    from filtax.report import catalogue, describe, published

    if name is not None:
        print(describe(name))
        return
    print_table(catalogue(), widest=48)
    print("\nPublished methods: filtax.methods.NAME(model, ...); filtax methods NAME tells more.")
    print("A.1 in parentheses is what is built unless posterior= is given.")
    print_table([("name", "task", "changes", "M.2", "M.3", "A.1", "A.2"), *published()])


def bandit(
    log: Annotated[Path, typer.Argument(help="CSV with the columns arm, reward, probability; others are the context.")],
    arms: Annotated[str | None, typer.Option(help="All arms, a,b,c; those of the log by default.")] = None,
    policy: Annotated[str, typer.Option(help="ts, ts-predictive, ucb, bayes-ucb, greedy or epsilon-greedy.")] = "ts",
    rewards: Annotated[str, typer.Option(help="binary, number, or auto to look.")] = "auto",
    rate: Annotated[float, typer.Option(help="Share of what was learned that a step keeps.")] = 0.999,
    context: Annotated[str | None, typer.Option(help="Context columns, x,y; all others by default.")] = None,
    uniform: Annotated[bool, typer.Option(help="Every arm was logged with the same probability.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Another number, other draws.")] = 0,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
) -> None:
    """Estimate what a policy that learns would have earned a round, from the log of another policy.

    Prints the mean reward of the log, and the estimates by replay, IPS, SNIPS and doubly robust, each with an interval.
    """
    start_jax()
    from filtax.bandits.logged_evaluation import evaluate_named_policy, read_log

    found = read_log(log, arms=_split(arms), context=_split(context), uniform=uniform)
    judged = evaluate_named_policy(found, policy, rewards=rewards, rate=rate, seed=seed, level=level)
    talk(f"{len(found)} rows, {len(found.arms)} arms; {judged.method} with {policy}. Mean reward of a round:")
    print_table([("estimate", "value", "low", "high", "rows"), *judged.rows])


def _files(source: str) -> set[Path]:
    """The files that a source names."""
    return {Path(each).resolve() for each in glob.glob(source)} | {Path(source).resolve()}


def _damage(name: str) -> str:
    from filtax.datasets import DamagedDatasetError, find_dataset

    try:
        find_dataset(name)
    except DamagedDatasetError as damage:
        return f"{name}: {damage}"
    except FileNotFoundError as absence:  # a file before the damaged one
        return str(absence)
    return f"{name}: it is whole now."


def _split(names: str | None) -> list[str] | None:
    """The names in a list such as "a,b"; None without one."""
    return None if names is None else [name for name in names.split(",") if name]
