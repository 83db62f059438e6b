"""`filtax run` and `filtax resume`: learn a table online, and go on where that stopped."""

import signal
import sys
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer

from filtax.cli._options import Features, Horizon, Key, NoFeatures, OnBad, Source, Target, Time, asked_for, name_of
from filtax.cli._outcome import INTERRUPTED, guarded, onward
from filtax.cli._stopping import Asked, asked_to_stop, leave_now
from filtax.cli._talk import start_jax, talk

__all__ = ["folder_of", "go", "resume", "run"]


def run(
    source: Annotated[str | None, Source] = None,
    target: Target = None,
    time: Time = None,
    features: Features = None,
    task: Annotated[str | None, typer.Option(help="auto, regress, classify or segment.")] = None,
    method: Annotated[str | None, typer.Option(help="Name of a filter; `filtax methods` lists the parts.")] = None,
    horizon: Horizon = None,
    delay: Annotated[
        int | None, typer.Option(help="Rows by which targets come late; steps, where features are made of times.")
    ] = None,
    key: Key = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML with these options, as `filtax tune` and every run write it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; out/NAME by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the latest checkpoint in the folder.")] = False,
    on_bad: OnBad = None,
    no_features: NoFeatures = False,
    each: Annotated[bool, typer.Option("--print", help="Print the forecast of each row as it goes.")] = False,
    every: Annotated[int | None, typer.Option(help="Rows between two checkpoints; 65536 by default.")] = None,
    block: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Learn a table online: each row is forecast, then learned. Compares with baselines, and writes a report.

    The folder of the run holds predictions, events, scores, a checkpoint and the report. After a crash, --resume goes
    on as if nothing had happened. An option that is given counts more than the same one in --config.

    Exit codes: 0 done, or stopped at a checkpoint by SIGTERM or SIGHUP; 2 wrong arguments, or a table that cannot be
    read; 3 a checkpoint that cannot be used, or a table that is not the one it was; 4 not written; 130 interrupted.
    """
    with guarded():
        given = asked_for(
            config,
            source=source,
            target=target,
            time=time,
            key=key,
            features=features,
            task=task,
            method=method,
            horizon=horizon,
            delay=delay,
            made=False if no_features else None,
            on_bad=on_bad,
            every=every,
            block=block,
        )
        asked, root = folder_of(given, out, resume)
        _start(asked, root, each)


def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    each: Annotated[bool, typer.Option("--print", help="Print the forecast of each row as it goes.")] = False,
) -> None:
    """Go on with a run that was interrupted, or whose file has grown, from its latest checkpoint."""
    with guarded():
        _alone(folder)
        from filtax.runs.config import Config
        from filtax.runs.home import home_of

        config = Config.read(folder)
        if not any((folder / "checkpoint").glob("*.json")):
            talk(f"There is no checkpoint in {folder}: the run starts anew.")
        _start(config, folder, each, home_of(config, folder))


def folder_of(given: dict[str, Any], out: Path | None, resume: bool) -> tuple[Any, Path]:
    """The configuration of what was asked for, and the folder of its run; one that is in use is refused."""
    root = out or _usual(given, resume)
    if not resume and root.resolve() == Path.cwd():
        raise ValueError("--out: a run would fill the working folder with its files; name a folder of its own.")
    _alone(root)
    return _agreed(given, root, resume), root


def _start(config: Any, root: Path, each: bool, home: Path | None = None) -> None:
    """Learn a table, or cut a series."""
    from filtax.cli._segment import cut

    if config.task != "segment":
        return go(config, root, each, home)
    if each:
        raise ValueError("--print: where a series is cut nothing is forecast; leave it out.")
    return cut(config, root, home)


def _usual(given: dict[str, Any], resume: bool) -> Path:
    """out/NAME; a new run takes the first that is free."""
    name = ("segment-" if given.get("task") == "segment" else "") + name_of(given["source"])
    root, number = Path("out") / name, 2
    while not resume and (root / "config.toml").exists():
        root, number = Path("out") / f"{name}-{number}", number + 1
    return root


def _agreed(given: dict[str, Any], root: Path, resume: bool) -> Any:
    """The configuration of the run in the folder, if there is one and it is what was asked for."""
    from filtax.runs.config import CONFIG, Config
    from filtax.runs.home import begun_here

    if not (root / CONFIG).exists():
        return begun_here(Config.from_json(given), root)
    if not resume:
        raise ValueError(f"{root} holds a run already; add --resume to go on with it, or name another --out.")
    known = Config.read(root)
    for name, value in given.items():
        if value != known.to_json()[name] and (name, value) != ("task", "auto"):
            raise ValueError(
                f"--resume: the run in {root} has {name} = {known.to_json()[name]!r:.60}, not {value!r:.60}; leave it "
                "out, or name another --out."
            )
    return known


def go(config: Any, root: Path, each: bool = False, home: Path | None = None) -> None:
    """Learn to the end of the source, show it, write what a run leaves, and say where."""
    start_jax()
    from filtax.io import InputError
    from filtax.runs import carry_on
    from filtax.runs.job import WAIT
    from filtax.runs.wording import counted

    show, waits = _Show(each), config.source == "-"
    if waits:
        talk(f"The first {WAIT} rows of standard input are waited for, or its end; ^C takes what has come by then.")
    with asked_to_stop(patient=False) as asked:  # until the first block: it takes long to compile, and loses nothing

        def tell(*seen: Any) -> None:
            asked.patient = not waits
            show(*seen)

        try:
            done = carry_on(config, root, home=home, tell=tell, stop=lambda: bool(asked), warn=talk)
        except KeyboardInterrupt:
            kept = any((root / "checkpoint").glob("*.json"))
            if (waits and not kept) or (not waits and len(asked) > 1):
                raise
            how = f"write its report: filtax report {root}" if waits else f"go on: filtax resume {root}"
            talk(f"Stopped. To {how}" if kept else _unlearned(root, waits))
            if asked and not waits:
                leave_now(_code(asked))
            raise typer.Exit(_code(asked)) from None
        except InputError as problem:
            if waits or not any((root / "checkpoint").glob("*.json")):
                raise
            raise InputError(f"{problem} The rows before it are kept; {onward(config.source, root)}") from None
        asked.patient = True
        show.end(done)
        if waits and done.rows < WAIT and not done.stopped:
            talk(f"Standard input ended after {counted(done.rows, 'row')}: all was decided by these alone.")
        if done.stopped:
            how = f"write its report: filtax report {root}" if waits else f"go on: filtax resume {root}"
            talk(f"Stopped after {counted(done.rows, 'row')}. To {how}")
            raise typer.Exit(_code(asked))
        _finish(config, root, done.rows, each, asked)


def _unlearned(root: Path, waits: bool) -> str:
    begun = not waits and (root / "config.toml").exists()
    how = f"To start again: filtax resume {root}" if begun else "There is nothing to go on from."
    return f"Stopped before a row was learned. {how}"


def _finish(config: Any, root: Path, rows: int, each: bool, asked: Asked) -> None:
    """Leave what a run leaves, unless a signal came since the last block, or comes now."""
    try:
        asked.patient = False
        if asked:
            raise KeyboardInterrupt
        _leave(config, root, rows, each, asked)
    except KeyboardInterrupt:
        talk(f"Stopped: all rows are learned and kept, the report is not written. To write it: filtax report {root}")
        raise typer.Exit(_code(asked)) from None


def _leave(config: Any, root: Path, rows: int, each: bool, asked: Asked) -> None:
    """Write what a run leaves, and show it."""
    from filtax.io._files import PARTIAL, drop
    from filtax.runs.outputs import write_outputs
    from filtax.runs.wording import too_far

    far = too_far(config.horizon, config.delay, rows)
    if far:
        talk(far)
    try:
        written = write_outputs(root)
    except KeyboardInterrupt:
        for unfinished in root.glob(f"*{PARTIAL}"):
            drop(unfinished)
        raise
    asked.patient = True  # there is nothing left to stop
    text = f"{written.table}\n{written.words}"
    talk(text) if each else print(text)
    talk(written.about)
    talk(f"Report: {written.report}")


def _alone(root: Path) -> None:
    """Refuse a run that another process is at before anything slow is begun; the run itself looks again."""
    if (root / "checkpoint" / "lock").is_file():
        from filtax.io import lock

        with lock(root / "checkpoint"):
            pass


def _code(asked: list[int]) -> int:
    return 0 if asked and asked[0] != signal.SIGINT else INTERRUPTED


class _Show:
    """Progress on standard error, and each forecast on standard output if wanted."""

    def __init__(self, each: bool) -> None:
        self.each, self.live = each, sys.stderr.isatty()
        self.said, self.began, self.first, self.named = 0.0, monotonic(), True, False
        self.rejected: Any = None  # the first

    def __call__(self, progress: Any, block: Any, told: dict[str, Any], stream: Any) -> None:
        if not self.named:
            self.named = True
            _name_features(stream)
        self.rejected = self.rejected or next(iter(block.rejected), None)
        if self.each and block.rows:
            self._print(block, told, stream)
        if self.live and monotonic() - self.said > 0.2:
            self.said = monotonic()
            speed = progress.rows / max(self.said - self.began, 1e-9)
            print(f"\r{progress.rows:,} rows, {speed:,.0f} a second\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self, progress: Any) -> None:
        """Leave a line that stays."""
        print("\r\x1b[K" if self.live else "", end="", file=sys.stderr)
        from filtax.runs.wording import counted

        learned = progress.rows - progress.blank
        blank = f"{progress.blank} without a target, " if progress.blank else ""
        missing = f", {counted(progress.missing, 'step')} missing" if progress.missing else ""
        talk(
            f"{counted(learned, 'row')} learned, {blank}{progress.rejected} left out, "
            f"{progress.distrusted} not trusted, {counted(progress.changes, 'change')}{missing}."
        )
        if progress.blank > learned:
            talk("Most rows have no target, and taught nothing: is it the column that you meant?")
        if self.rejected is not None:
            most = "More rows were left out than learned. " if progress.rejected > learned else ""
            talk(f"{most}The first that was left out: {self.rejected}")

    def _print(self, block: Any, told: dict[str, Any], stream: Any) -> None:
        import numpy as np

        from filtax.runs.foresight import write_csv

        columns = {"line": block.line}
        if block.time is not None:
            columns["time"] = block.time
        if block.key is not None:
            columns["key"] = block.key
        names = ("forecast", "lower", "upper", "y") if "lower" in told else ("forecast", "probability", "y")
        labels = getattr(stream, "labels", None)
        for name in names:
            columns[name] = told[name]
            if labels is not None and name != "probability":
                values = [None if value != value else labels[int(value)] for value in told[name].tolist()]
                columns[name] = np.array(values, object)
        write_csv(columns, sys.stdout, self.first)
        self.first = False


def _name_features(stream: Any) -> None:
    """Say what is made of the target, where something is."""
    maker = getattr(stream, "maker", None)
    if maker is not None:
        seasons = " and".join(f" {cycle} steps ago" for cycle in maker.season.cycles)
        seasons = f", those{seasons}" if seasons else ""
        calendar = ", the calendar" if any(" cos " in name for name in maker.names) else ""
        made = f"{len(maker.names)} features are made of {stream.plan.config.target}"
        talk(f"{made}: its latest changes{seasons}{calendar}; --no-features makes none.")
