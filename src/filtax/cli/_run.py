"""`filtax run`, `filtax resume` and `filtax segment`: learn a table, and go on where that stopped."""

import signal
import sys
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Annotated, Any

import typer

from filtax.cli._options import (
    Delay,
    Features,
    Horizon,
    Key,
    OnError,
    Season,
    Settings,
    Source,
    Target,
    Time,
    asked_for,
    name_of,
)
from filtax.cli._outcome import INTERRUPTED, guarded, onward
from filtax.cli._stopping import Asked, asked_to_stop, leave_now
from filtax.cli._talk import start_jax, talk

Resume = Annotated[bool, typer.Option("--resume", help="Go on from the latest checkpoint in the folder.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the run; out/NAME by default.")]
Each = Annotated[bool, typer.Option("--print", help="Print the forecast of each row as it goes.")]


def run(
    source: Annotated[str | None, Source] = None,
    target: Target = None,
    time: Time = None,
    features: Features = None,
    task: Annotated[str | None, typer.Option(help="auto, regress, classify or segment.")] = None,
    method: Annotated[str | None, typer.Option(help="Name of a filter in place of the standard ones.")] = None,
    season: Season = None,
    horizon: Horizon = None,
    delay: Delay = None,
    key: Key = None,
    config: Settings = None,
    out: Out = None,
    resume: Resume = False,
    on_error: OnError = None,
    each: Each = False,
    checkpoint_every: Annotated[int | None, typer.Option(help="Rows between two checkpoints; 65536.")] = None,
    block: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Learn a table online: each row is forecast, then learned. Compares with baselines, and writes a report.

    With --time only the target and the --features are read, else all columns are. The folder of the run holds
    predictions, events, scores, a checkpoint and the report. After a crash, --resume goes on as if nothing had
    happened. An option that is given counts more than the same one in --config.

    Exit codes: 0 done, or stopped at a checkpoint by SIGTERM or SIGHUP; 2 wrong arguments, or a table that cannot be
    read; 3 a checkpoint that cannot be used, or a table that is not the one it was; 4 not written; 130 interrupted.
    """
    options = {name: value for name, value in locals().items() if name not in ("config", "out", "resume", "each")}
    with guarded():
        asked, root = folder_of(asked_for(config, **options), out, resume)
        _start(asked, root, each)


def resume(folder: Annotated[Path, typer.Argument(help="Folder of a run.")], each: Each = False) -> None:
    """Go on with a run that was interrupted, or whose file has grown, from its latest checkpoint."""
    with guarded():
        _alone(folder)
        from filtax.pipeline._config import Config

        config = Config.read(folder)
        if not any((folder / "checkpoint").glob("*.json")):
            talk(f"There is no checkpoint in {folder}: the run starts from the first row.")
        _start(config, folder, each, config.find_home(folder))


def segment(
    source: Annotated[str, Source],
    target: Annotated[str, typer.Option(help="Column that is to be segmented.")],
    time: Time = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; out/segment-NAME by default.")] = None,
    resume: Resume = False,
    on_error: OnError = None,
) -> None:
    """Cut a series into segments, looking back, and list the alarms that could have been given as it came.

    Prints one object of JSON: the segments with their lines, means and probabilities, the alarms with the starts they
    named, the cycle if there is one. The folder of the run holds the same, each row with its segment, and a report. The
    whole series is held in memory, 20,000 readings at most. After a crash, --resume goes on.
    """
    with guarded():
        asked = asked_for(None, source=source, target=target, time=time, on_error=on_error, task="segment")
        _start(*folder_of(asked, out, resume), each=False)


def folder_of(given: dict[str, Any], out: Path | None, resume: bool) -> tuple[Any, Path]:
    """The configuration of what was asked for, and the folder of its run; one that is in use is refused."""
    from filtax.pipeline._config import CONFIG, Config

    name = ("segment-" if given.get("task") == "segment" else "") + name_of(given["source"])
    root, number = out or Path("out") / name, 2
    while out is None and not resume and (root / CONFIG).exists():
        root, number = Path("out") / f"{name}-{number}", number + 1
    if not resume and root.resolve() == Path.cwd():
        raise ValueError("--out: a run would fill the working folder with its files; name a folder of its own.")
    _alone(root)
    if not (root / CONFIG).exists():
        return Config.from_json(given).begun(root), root
    if not resume:
        raise ValueError(f"{root} holds a run already; add --resume to go on with it, or name another --out.")
    known = Config.read(root)
    for name, value in given.items():
        own = known.to_json()[name]
        if value != own and (name, value) != ("task", "auto"):
            raise ValueError(
                f"--resume: the run in {root} has {name} = {own!r:.60}, not {value!r:.60}; omit it, or name another "
                "--out."
            )
    return known, root


def _start(config: Any, root: Path, each: bool, home: Path | None = None) -> None:
    """Learn a table, or segment a series."""
    if config.task != "segment":
        return go(config, root, each, home)
    if each:
        raise ValueError("--print: where a series is segmented nothing is forecast; omit it.")
    start_jax()
    from filtax.pipeline._segments import segment_source

    found = None
    with asked_to_stop(patient=False) as asked:
        try:
            found = segment_source(config, root, home=home, tell=talk, warn=talk)
            show_segments(root, found, asked)
        except KeyboardInterrupt:
            talk(_stopped(config, root, found is not None))
            _leave(root, asked)


def show_segments(root: Path, found: Any, asked: Asked | None = None) -> None:
    """Write what a series that was segmented leaves, and print it."""
    import json

    from filtax.pipeline._segments import write_segments

    told, written = write_segments(root, found)
    if asked is not None:
        asked.patient = True  # there is nothing left to stop
    print(json.dumps(told, indent=1, ensure_ascii=False))
    talk(f"{written.words}\nReport: {written.report}")


def go(config: Any, root: Path, each: bool = False, home: Path | None = None) -> None:
    """Learn to the end of the source, show it, write what a run leaves, and say where."""
    show, waits, written = _Show(each), config.source == "-", False
    with asked_to_stop(patient=False) as asked:  # until the first block: it takes long to compile, and loses nothing
        try:
            start_jax()
            from filtax.io import InputError
            from filtax.pipeline import run_pipeline, write_outputs
            from filtax.pipeline._runner import WAIT

            if waits:
                talk(f"The first {WAIT} rows of standard input are waited for, or its end; ^C takes what has come.")

            def tell(*seen: Any) -> None:
                asked.patient = not waits
                show(config, *seen)

            try:
                done = run_pipeline(config, root, home=home, tell=tell, stop=lambda: bool(asked), warn=talk)
            except InputError as problem:
                if waits or not any((root / "checkpoint").glob("*.json")):
                    raise
                raise InputError(f"{problem} The rows before it are kept; {onward(config.source, root)}") from None
            asked.patient = True
            show.end(done)
            if done.stopped:
                raise KeyboardInterrupt
            written, asked.patient = True, False
            if asked:
                raise KeyboardInterrupt
            outputs = write_outputs(root)
            asked.patient = True  # there is nothing left to stop
            text = f"{outputs.table}\n{outputs.words}"
            talk(text) if each else print(text)
            talk(f"{outputs.about}\nReport: {outputs.report}")
        except KeyboardInterrupt:
            show.close()
            talk(_stopped(config, root, written))
            _leave(root, asked)
        finally:
            show.close()


def _stopped(config: Any, root: Path, whole: bool) -> str:
    """What is kept of a run that was left before its end, and how to go on."""
    if whole:
        return f"Stopped: all rows are learned and kept, the report is not written. To write it: filtax report {root}"
    if any((root / "checkpoint").glob("*.json")):
        waits = config.source == "-"
        return f"Stopped. To {'write its report: filtax report' if waits else 'go on: filtax resume'} {root}"
    if (root / "config.toml").exists() and config.source != "-":
        return f"Stopped before a checkpoint was written. To start again: filtax resume {root}"
    return "Stopped before a row was learned: there is nothing to go on from."


def _leave(root: Path, asked: Asked) -> None:
    """End after a signal: nothing half written stays, and threads that still compile do not keep the process."""
    from filtax.io._files import PARTIAL, drop

    for unfinished in root.glob(f"*{PARTIAL}"):
        drop(unfinished)
    code = 0 if asked and asked[0] != signal.SIGINT else INTERRUPTED
    if asked:
        leave_now(code)
    raise typer.Exit(code) from None


def _alone(root: Path) -> None:
    """Refuse a run that another process is at before anything slow is begun; the run itself looks again."""
    if (root / "checkpoint" / "lock").is_file():
        from filtax.io import lock

        with lock(root / "checkpoint"):
            pass


class _Show:
    """Progress on standard error, from the start on, and each forecast on standard output if wanted."""

    def __init__(self, each: bool) -> None:
        self.each, self.head, self.rows, self.began, self.first = each, True, 0, monotonic(), None
        self.over = Event()
        self.over.set() if not sys.stderr.isatty() else Thread(target=self._draw, daemon=True).start()

    def __call__(self, config: Any, progress: Any, rejected: Any, learned: Any, learner: Any) -> None:
        self.rows, self.first = progress.rows, self.first or next(iter(rejected), None)
        if self.each and learned is not None and len(learned.rows):
            from filtax.pipeline._run import plain_columns, write_csv

            write_csv(plain_columns(config, learner, learned), sys.stdout, self.head)
            self.head = False

    def end(self, progress: Any) -> None:
        """Leave a line that stays."""
        self.close()
        from filtax.pipeline._page import counted

        learned = progress.rows - progress.blank
        blank = f"{progress.blank} without a target, " if progress.blank else ""
        missing = f", {counted(progress.missing, 'step')} missing" if progress.missing else ""
        alarms = f"{counted(progress.outliers, 'outlier')}, {counted(progress.changes, 'change')}"
        talk(f"{counted(learned, 'row')} learned, {blank}{progress.rejected} rejected, {alarms}{missing}.")
        if progress.blank > learned:
            talk("Most rows have no target, and taught nothing: is it the column that you meant?")
        if self.first is not None:
            most = "More rows were rejected than learned. " if progress.rejected > learned else ""
            talk(f"{most}The first that was rejected: {self.first}")

    def close(self) -> None:
        """End the line of progress."""
        if not self.over.is_set():
            self.over.set()
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _draw(self) -> None:
        while not self.over.wait(0.5 if self.rows else 0.2):
            passed = monotonic() - self.began
            words = f"{self.rows:,} rows, {self.rows / passed:,.0f} a second" if self.rows else "reading and compiling"
            print(f"\r{words}, {passed:.0f} s\x1b[K", end="", file=sys.stderr, flush=True)
