"""`filtax predict`: what a run that was made says of other rows."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from filtax.cli._outcome import guarded
from filtax.cli._talk import start_jax, talk

__all__ = ["predict"]


def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    source: Annotated[
        str | None,
        typer.Argument(
            help="Rows to forecast, as for `filtax run`: a table, a pattern, or - for stdin.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the forecasts, .csv or .parquet; standard output by default.")
    ] = None,
    on_bad: Annotated[
        str, typer.Option(help="reject: leave bad rows out; stop: end at the first. None needs a target.")
    ] = "reject",
) -> None:
    """Forecast the rows of a table with what a run has learned. The run stays as it is: nothing is learned.

    The table needs the columns that the run learned from, not the target. One line is printed for each row: its line,
    key and time, the target if it is there, the forecast and the interval; for labels the probability of each.

    A run with --time forecasts rows that lie behind its end; earlier rows are left out. It looks as far ahead as its
    --horizon: a row further than that behind the last known target has an empty forecast. A target in the table serves
    the forecasts of later rows. Without a table it forecasts the next steps, as many as its --horizon.

    Exit codes: 0 done; 2 the table cannot be read; 3 there is no run, or its checkpoint is damaged; 4 not written.
    """
    with guarded():
        _refuse_form(out)
        start_jax()
        from filtax.runs.foresight import Foresight, write_csv, write_table
        from filtax.runs.outlook import next_steps
        from filtax.runs.results import open_run
        from filtax.runs.wording import counted

        run = open_run(folder, warn=talk)
        if source is None:
            columns = next_steps(run)
            if out is None:
                write_csv(columns, sys.stdout, True)
            else:
                write_table([columns], out)
                talk(f"Forecasts: {out}")
            return
        told = Foresight(run, source, on_bad)
        with closing(told.table):  # also where nothing can be written
            if out is not None:
                write_table(told, out)
            else:
                for number, columns in enumerate(told):
                    write_csv(columns, sys.stdout, number == 0)
        all_of = "its only row lies" if told.early == 1 else f"all {told.early} rows lie"
        if not told.rows and told.early:
            raise ValueError(f"{source}: {all_of} before the end of the run; give it later ones.")
        if not told.rows:
            why = f"; the first that was left out: {told.first}" if told.first else ""
            raise ValueError(f"{source}: not one row could be read{why}.")
        without = f"{told.blank} of them without a forecast; {told.rejected} could not be read"
        words = f"{counted(told.rows, 'row')}, {without}"
        talk(f"{words}; {told.early} were not behind the end of the run." if told.early else f"{words}.")
        if told.blank and told.run.config.time:
            far = counted(told.run.config.horizon, "step")
            talk(f"The run looks {far} ahead; make one with a longer --horizon for more.")
        if out is not None:
            talk(f"Forecasts: {out}")


def _refuse_form(out: Path | None) -> None:
    """Refuse a name that asks for a form that is not written: CSV under another name would help nobody."""
    if out is not None and out.suffix not in (".csv", ".parquet"):
        given = f"it ends with {out.suffix}" if out.suffix else "it has no ending"
        raise ValueError(f"--out {out}: {given}; forecasts are written as .csv or .parquet.")
