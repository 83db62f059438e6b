"""`filtax report`, `compare`, `predict` and `doctor`: what was learned, and whether all is well."""

import glob
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from filtax.cli._outcome import guarded
from filtax.cli._talk import print_table, start_jax, talk

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]


def report(folder: Folder) -> None:
    """Write the predictions, the scores and the report of a run again, up to its latest checkpoint."""
    with guarded():
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
    with guarded():
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
    with guarded():
        if out is not None and out.suffix not in (".csv", ".parquet"):
            given = f"it ends with {out.suffix}" if out.suffix else "it has no ending"
            raise ValueError(f"--out {out}: {given}; forecasts are written as .csv or .parquet.")
        if out is not None and (
            folder.resolve() in out.resolve().parents or (source and out.resolve() in _files(source))
        ):
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
    with guarded():
        start_jax()
        from filtax.pipeline._health import checked

        well = True
        for name, found, good in checked():
            print(f"{'ok ' if good else 'BAD'}  {name:<12} {found}", flush=True)
            well = well and good
        if not well:
            raise typer.Exit(1)


def _files(source: str) -> set[Path]:
    """The files that a source names."""
    return {Path(each).resolve() for each in glob.glob(source)} | {Path(source).resolve()}
