"""The command line as a person meets it: in a process of its own, by what it prints, where, and how it exits."""

import os
import re
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

from filtax.cli import run as run_command
from filtax.io import Damaged

COMMAND = [sys.executable, "-c", "from filtax.cli import main; main()"]
SMALL = ("demo", "--hours", "336")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


def filtax(*arguments, home, **environment):
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(home), "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""), **environment}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, env=plain, timeout=240, cwd=home
    )


def cells(stdout: str) -> dict[str, list[str]]:
    """Lines of the table by name, without the time per row, which no two runs share."""
    found = re.findall(r"^(\S+)((?: +-?[\d.]+){3}) +(?:-|[\d.]+)$", stdout, flags=re.MULTILINE)
    return {name: numbers.split() for name, numbers in found}


@pytest.fixture(scope="module")
def done(home):
    return filtax(*SMALL, "--seed", 1, "--out", home / "out", home=home, XDG_CACHE_HOME=str(home / "cache"))


def test_the_demo_prints_a_table_draws_a_figure_and_writes_a_report(done, home):
    assert done.returncode == 0, done.stderr
    assert list(cells(done.stdout)) == ["filtax", "last-value", "seasonal-naive(24)"]
    assert done.stderr.splitlines()[-2:] == [
        f"Report: {home / 'out' / 'demo' / 'report.html'}",
        f"Figure: {home / 'out' / 'demo.png'}",
    ]
    assert (home / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert (home / "out" / "demo" / "report.html").read_text().startswith("<!doctype html>")


def test_talk_goes_to_standard_error(done, home):
    assert done.stderr.startswith("An hourly load in GW. Of 336 hours")
    assert f"filtax run {home / 'out' / 'demo.csv'} --target load --time time" in done.stderr
    assert "304 rows learned, 32 without a target, 0 rejected" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr  # no colours, no cursor moves outside of a terminal
    assert "Warning" not in done.stderr


def test_compiled_programs_are_kept_where_the_user_wants_them(done, home):
    assert any((home / "cache" / "filtax" / "jax").iterdir())
    assert not (home / ".cache").exists()


def test_the_doctor_names_damaged_programs_and_how_to_clear_them(done, home):
    def cache_line():
        run = filtax("doctor", home=home, XDG_CACHE_HOME=str(home / "damaged"))
        return next(line for line in run.stdout.splitlines() if "  cache  " in line)

    shutil.copytree(home / "cache", home / "damaged")
    folder = home / "damaged" / "filtax" / "jax"
    first, second, *others = sorted(folder.glob("*-cache"))
    first.write_bytes(first.read_bytes()[:20])
    second.write_bytes(b"")
    told = cache_line()
    assert f"{folder}, {len(others)} compiled programs; 2 more are damaged" in told
    subprocess.run(["bash", "-c", told.split("to clear them: ")[1]], check=True)
    assert cache_line().endswith(f"{folder}, 0 compiled programs")


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_table_and_the_cache_is_optional(done, home):
    """A file where the cache folder should be: nothing is kept, nothing is said, the numbers are the same."""
    (home / "file").write_text("")
    cache = {"XDG_CACHE_HOME": str(home / "file"), "MPLCONFIGDIR": str(home / "matplotlib")}
    again = filtax(*SMALL, "--seed", 1, "--out", home / "out", home=home, **cache)
    assert (again.returncode, again.stderr) == (0, done.stderr)
    assert cells(again.stdout) == cells(done.stdout)


@pytest.mark.parametrize("arguments", [("--help",), ()])
def test_help_lists_the_commands(arguments, home):
    run = filtax(*arguments, home=home)
    assert run.returncode == 0
    assert re.search(r"^  demo +\S", run.stdout, flags=re.MULTILINE)
    assert re.search(r"^  methods +\S", run.stdout, flags=re.MULTILINE)
    assert run.stderr == ""


def test_methods_lists_the_parts_of_a_name_and_describes_one(home):
    listed, told, wrong = (filtax("methods", *name, home=home) for name in ((), ("li_2021",), ("li_2012",)))
    assert (listed.returncode, told.returncode, wrong.returncode) == (0, 0, 2)
    assert re.search(r"^prior +ACI\(q=\.\.\.\) +\S", listed.stdout, flags=re.MULTILINE)
    assert re.search(r"^titsias_2023 .* CPP +OU +LG +CA$", listed.stdout, flags=re.MULTILINE)
    assert "beta = 0.5" in told.stdout
    assert "model  (must be given)" in told.stdout
    assert "li_2021" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("demo", "--hours", "many"), "--hours"),
        (("demo", "--hours", "12"), "336"),
        (("dmeo",), "dmeo"),
        (("demo", "--sed", "3"), "--sed"),
    ],
)
def test_wrong_arguments_exit_2_with_one_sentence(arguments, words, home):
    run = filtax(*arguments, home=home)
    assert (run.returncode, run.stdout) == (2, "")
    assert re.fullmatch(r"filtax: [^\n]+\.\n", run.stderr)
    assert words in run.stderr


def test_a_folder_that_cannot_be_made_exits_4_with_one_sentence(home):
    (home / "taken").write_text("")
    run = filtax(*SMALL, "--out", home / "taken" / "out", home=home)
    assert (run.returncode, run.stdout) == (4, "")
    assert re.fullmatch(r"filtax: [^\n]+taken[^\n]*name another folder\.\n", run.stderr)


def test_an_interrupt_exits_130_without_a_traceback(home):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    hears = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # a background job would not
    command = [*COMMAND[:2], hears + COMMAND[2], "demo", "--hours", "1344"]  # a longer stream would keep XLA busy
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, cwd=home, **pipes) as process:
        assert process.stderr.readline().startswith("An hourly load")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert stdout == ""
    assert "Traceback" not in stderr


def test_a_reader_that_leaves_is_no_error(home):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    command = [*COMMAND, "methods"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, cwd=home, **pipes) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=120) == 0


def test_importing_changes_no_setting_and_draws_in_nothing_heavy(home):
    settings = "jax.config.jax_enable_x64, jax.config.jax_compilation_cache_dir"
    code = f"import sys, filtax.cli, jax; print({settings}, {{'matplotlib', 'rich'}} & set(sys.modules))"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert run.stdout == "False None set()\n"


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyError("a\nsecret"), 1, "a fault of filtax, KeyError: .* FILTAX_TRACEBACK=1 to see where"),
        (np.linalg.LinAlgError("Singular matrix"), 1, "a fault of filtax, LinAlgError: Singular matrix; "),
        (ValueError("t.csv: it is empty."), 2, "t.csv: it is empty"),
        (Damaged("run: it was cut short"), 3, "run: it was cut short"),
        (
            PermissionError(13, "Permission denied", "out"),
            4,
            "out: permission denied; name a folder that you may write",
        ),
        (FileNotFoundError(2, "No such file", "t.csv"), 2, "t.csv: no such file"),
        (ModuleNotFoundError("tune needs optuna"), 1, "tune needs optuna"),
        (MemoryError("8 TiB"), 1, "the memory of this machine is too small"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_its_place_is_shown_on_request(
    error, code, said, shown, monkeypatch, capsys
):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("filtax.cli._main.app", broken)
    if shown:
        monkeypatch.setenv("FILTAX_TRACEBACK", "1")
    assert run_command(["run"]) == code
    *traceback, sentence = capsys.readouterr().err.splitlines()
    assert re.match(f"filtax: {said}.*[.?]$", sentence)
    assert bool(traceback) == shown


def test_the_module_is_the_command():
    told = [
        subprocess.run(
            [sys.executable, "-m", "filtax", *arguments], capture_output=True, text=True, timeout=240, check=False
        )
        for arguments in (["--version"], ["nonsense"])
    ]
    assert (told[0].returncode, told[0].stdout.strip()) == (0, f"filtax {version('filtax')}")
    assert (told[1].returncode, told[1].stdout) == (2, "")
    assert told[1].stderr == "filtax: No such command 'nonsense'. See `filtax --help`.\n"


RUN = "run {0}/t.csv --target y --print --out {0}/out <&- >&- 2>&-"


@pytest.mark.parametrize(("arguments", "code"), [("--version >&-", 0), ("nonsense 2>&-", 2), (RUN, 0)])
def test_standard_streams_may_be_closed(arguments, code, tmp_path):
    """It was a fault of filtax, or what was for standard error went to standard output."""
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{t % 7},{2 * (t % 7)}\n" for t in range(60)))
    command = ["bash", "-c", f'exec "$0" -m filtax {arguments.format(tmp_path)}', sys.executable]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")
    assert (tmp_path / "out/report.html").is_file() == (arguments == RUN)
