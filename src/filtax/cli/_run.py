"""`filtax run`, `resume`, `segment`, `tune`: learn a table, go on where that stopped, choose a method's numbers."""

import signal
import sys
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Annotated, Any

import typer

from filtax.cli._shared import INTERRUPTED, start_jax, talk
from filtax.cli._stopping import Asked, asked_to_stop, leave_now

Source = typer.Argument(help="CSV, TSV, JSON lines or Parquet, also gzipped; a pattern; - for stdin.")
Target = Annotated[str | None, typer.Option(help="Column that is to be forecast.")]
Time = Annotated[str | None, typer.Option(help="Column of times.")]
Features = Annotated[str | None, typer.Option(help="Columns known when a row is forecast, a,b.")]
Horizon = Annotated[int | None, typer.Option(help="Steps ahead; 1 by default.")]
Delay = Annotated[int | None, typer.Option(help="Rows by which targets become known later.")]
Key = Annotated[str | None, typer.Option(help="Column that names the series of a row.")]
Season = Annotated[int | None, typer.Option(help="Rows of a season, without times; looked for by default.")]
Settings = Annotated[
    Path | None, typer.Option(help="TOML with these options, as every run and `filtax tune` write it.")
]
OnError = Annotated[
    str | None,
    typer.Option(help="reject: skip and count rows that cannot be read; stop: end at the first, or without a target."),
]
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
    asked, root = folder_of(asked_for(config, **options), out, resume)
    _start(asked, root, each)


def resume(folder: Annotated[Path, typer.Argument(help="Folder of a run.")], each: Each = False) -> None:
    """Go on with a run that was interrupted, or whose file has grown, from its latest checkpoint."""
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
    asked = asked_for(None, source=source, target=target, time=time, on_error=on_error, task="segment")
    _start(*folder_of(asked, out, resume), each=False)


def tune(
    source: Annotated[str | None, Source] = None,
    target: Target = None,
    time: Time = None,
    features: Features = None,
    task: Annotated[str | None, typer.Option(help="auto, regress or classify.")] = None,
    method: Annotated[str | None, typer.Option(help="Name of a filter, whose numbers are to be chosen.")] = None,
    season: Season = None,
    horizon: Horizon = None,
    delay: Delay = None,
    key: Key = None,
    config: Settings = None,
    rows: Annotated[int, typer.Option(help="First rows to choose by; no others are looked at.")] = 2000,
    budget: Annotated[int, typer.Option(max=1_000_000, help="Settings to try in all.")] = 48,
    by: Annotated[str, typer.Option(help="interval: its score (labels: the log loss); mae: the error.")] = "interval",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Another number, another search.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the journal and tuned.toml; out/tune-NAME.")] = None,
) -> None:
    """Choose the numbers in the name of a --method on the first rows of a table.

    Each setting that is tried is a run over these rows. Prints what was found as TOML, which is also written to
    tuned.toml in the folder: `filtax run --config out/tune-NAME/tuned.toml`. If nothing was better than the numbers
    it began with, it says so and keeps them. After an interruption the same command goes on where it stopped. The
    scores of the run afterwards include the rows that were chosen by; judge it by the others.

    Needs optuna: install filtax[tune]. Exit codes: 0 done; 1 optuna is missing; 2 wrong arguments, or a table that
    cannot be read; 4 not written; 130 interrupted.
    """
    entries = ("source", "target", "time", "features", "task", "method", "season", "horizon", "delay", "key")
    given = {name: value for name, value in locals().items() if name in entries}
    from filtax.pipeline import Config

    asked = Config.from_json(asked_for(config, **given))
    folder, done = out or Path("out") / f"tune-{name_of(asked.source)}", 0
    start_jax()
    from filtax.pipeline._tune import JOURNAL, TUNED, search
    from filtax.report import progress

    try:
        with progress(["settings"], budget, unit="tried") as advance:

            def told(tried: int, loss: float) -> None:
                nonlocal done
                advance("settings", tried - done)
                done = tried

            found = search(asked, folder, rows=rows, budget=budget, seed=seed, by=by, told=told, warn=talk)
    except KeyboardInterrupt:
        kept = f"The {done} settings that were tried" if done else "The settings that were tried before"
        kept = f"{kept} are kept in {folder}. To go on" if (folder / JOURNAL).exists() else "To start again"
        talk(f"Stopped. {kept}: the same command.")
        raise
    print((folder / TUNED).read_text(), end="")
    words = f"loss {found.loss:.4g} a row, {found.usual:.4g} before"
    words = words if found.loss < found.usual else "none was better than before"
    talk(f"{found.tried} settings on {found.rows} rows: {words}. To use it: filtax run --config {folder / TUNED}")


def asked_for(config: Path | None, **options: Any) -> dict[str, Any]:
    """Entries of a configuration: those of a file, and over them the options that were given."""
    from filtax.pipeline._config import settings_of

    given = {name: value for name, value in options.items() if value is not None}
    if "features" in given:
        given["features"] = [name for name in given["features"].split(",") if name]
    asked = {**(settings_of(config) if config else {}), **given}
    for name, word in (("source", "SOURCE"), ("target", "--target")):
        if name not in asked:
            raise ValueError(f"{word} is missing: name it, or give a --config that does.")
    return asked


def name_of(source: str) -> str:
    """A short name of a source, for the folder of what is made of it."""
    return "stdin" if source == "-" else Path(source).name.split(".")[0].strip("*?[]-_") or "run"


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


def onward(source: str, root: Path) -> str:
    """What can be done with a run whose source ended in a fault.

    A Parquet that is repaired is written again, whole: no row of it is known to be the one that was read.
    """
    if source.lower().endswith((".parquet", ".pq")):
        return f"a repaired Parquet is read again from its start; of these rows: filtax report {root}"
    return f"to go on: filtax resume {root}"


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
    from filtax.pipeline._folder import OUTPUTS

    if (root / "config.toml").is_file():  # else the folder may be somebody else's
        for name in OUTPUTS:
            drop(root / f"{name}{PARTIAL}")
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
