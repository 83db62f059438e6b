"""Switches of the whole process: what they set, when they refuse, and that nothing fails where nothing can be kept."""

import os
import subprocess
import sys

import jax
import pytest

from filtax import _xla
from filtax.pipeline import _health as health

SMALL_LOOP = "xla_cpu_small_while_loop_byte_threshold=4194304"
SETTINGS = ("jax_cpu_enable_async_dispatch", "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
SETTINGS += ("jax_persistent_cache_min_entry_size_bytes",)


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    """Leave the process as it was; within a test it is as if JAX had not begun."""
    before = {name: jax.config.values[name] for name in SETTINGS}
    monkeypatch.setattr(_xla.xla_bridge, "backends_are_initialized", lambda: False)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("XLA_FLAGS", "")  # so that what a test sets is taken back
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.mark.parametrize("flags", ["", "--xla_cpu_enable_fast_math=false"])
def test_flags_are_added_to_those_that_are_there(flags, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", flags)
    _xla.tune_xla()
    assert os.environ["XLA_FLAGS"].split() == [*flags.split(), f"--xla_backend_extra_options={SMALL_LOOP}"]
    assert jax.config.values["jax_cpu_enable_async_dispatch"] is False
    _xla.tune_xla()  # a second call changes nothing
    assert os.environ["XLA_FLAGS"].count(SMALL_LOOP) == 1


def test_other_options_of_the_same_flag_are_not_overwritten(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_extra_options=other=1")
    with pytest.raises(RuntimeError, match=f"already sets xla_backend_extra_options; add {SMALL_LOOP}"):
        _xla.tune_xla()
    _xla.tune_if_possible()
    assert os.environ["XLA_FLAGS"] == "--xla_backend_extra_options=other=1"


def test_too_late(monkeypatch):
    monkeypatch.setattr(_xla.xla_bridge, "backends_are_initialized", lambda: True)
    with pytest.raises(RuntimeError, match="called after JAX had begun to compute; call it first"):
        _xla.tune_xla()
    assert os.environ["XLA_FLAGS"] == ""


def test_one_variable_switches_the_hints_off(monkeypatch):
    """Then nothing is set, and a program holds no hint."""
    monkeypatch.setenv("FILTAX_XLA", "0")
    _xla.tune_xla()
    assert os.environ["XLA_FLAGS"] == ""
    monkeypatch.setattr(_xla.xla_bridge, "backends_are_initialized", lambda: True)
    _xla.tune_xla()  # never too late to do nothing
    doubled = jax.jit(lambda a: _xla.no_inline(lambda b: 2.0 * b)(a))
    assert "inlineable" not in doubled.lower(1.0).as_text()
    monkeypatch.setenv("FILTAX_XLA", "1")
    doubled = jax.jit(lambda a: _xla.no_inline(lambda b: 2.0 * b)(a))
    assert ("inlineable" in doubled.lower(1.0).as_text()) == (jax.default_backend() == "cpu")


@pytest.mark.parametrize(
    "start",
    ["import filtax as fx; fx.Regressor().learn_one({'x': 1.0}, 1.0)", "from filtax.cli import run; run(['doctor'])"],
    ids=["estimators", "command line"],
)
def test_estimators_and_the_command_line_tune_xla(start):
    """Before JAX computes; where it has begun, they work without it."""
    for first, tuned in (("", True), ("import jax; jax.devices();", False)):
        code = f"{first}\n{start}\nimport os, sys; sys.exit(3 + ('{SMALL_LOOP}' in os.environ.get('XLA_FLAGS', '')))"
        clean = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=clean)
        assert run.returncode == 3 + tuned, run.stderr


def test_xla_knows_the_option_for_small_loops():
    """A version of XLA that dropped it would be as correct, and ten times slower."""
    code = """
import filtax as fx, jax, jax.numpy as jnp, numpy as np
fx.tune_xla()
kf = fx.method("LG(form=covariance)+C-ACI(q=0.1)", model=fx.models.linear(noise=1.0))
state, X = kf.init(mean=jnp.zeros(4), cov=1.0), np.ones((512, 4), np.float32)
run = jax.jit(lambda state, X, y: kf.scan(state, X, y, keep=("mean",))[1].mean)
print("small_call" in run.lower(state, X, X[:, 0]).compile().as_text())
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "XLA_FLAGS": ""}
    )
    assert run.stdout == "True\n", run.stderr


def test_a_small_filter_in_such_a_process_learns_what_algebra_says():
    """Its loop is one kernel there: ridge regression by numpy, of a model with two outputs and one with one."""
    code = """
import filtax as fx, numpy as np
fx.tune_xla()
rng = np.random.default_rng(0)
for form in ("covariance", "root"):
    for shape in ((40, 2, 4), (40, 3)):
        X, Y, D = rng.normal(size=shape).astype("f"), rng.normal(size=shape[:-1]).astype("f"), shape[-1]
        kf = fx.method(f"LG(form={form})+C-Static", model=fx.models.linear(noise=0.5))
        state, infos = kf.scan(kf.init(mean=np.zeros(D, "f"), cov=2.0), X, Y)
        H, y = X.reshape(-1, D).astype(float), Y.reshape(-1)
        cov = np.linalg.inv(np.eye(D) / 2.0 + H.T @ H / 0.5)
        found = kf.belief(state)
        np.testing.assert_allclose(found.mean, cov @ H.T @ y / 0.5, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.cov, cov, rtol=1e-4, atol=1e-6)
        S = 2.0 * H @ H.T + 0.5 * np.eye(len(y))
        want = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(2.0 * np.pi * S)[1])
        np.testing.assert_allclose(np.sum(infos.log_evidence), want, rtol=1e-4)
        print("right")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout.split(), run.stderr) == (["right"] * 4, "")


def test_compilations_are_kept_where_asked(tmp_path, monkeypatch):
    folder = tmp_path / "deep" / "down"
    assert _xla.cache_compilations(folder) == folder
    assert folder.is_dir()
    assert jax.config.jax_compilation_cache_dir == str(folder)
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 0.0
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _xla.cache_compilations() == tmp_path / "filtax" / "jax"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")  # which is then to be ignored
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _xla.cache_compilations() == tmp_path / ".cache" / "filtax" / "jax"


def test_nothing_fails_where_nothing_can_be_kept(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    (tmp_path / "file").touch()
    assert _xla.cache_compilations(tmp_path / "file" / "below") is None
    assert jax.config.jax_compilation_cache_dir == before


def mode(path):
    return oct(path.stat().st_mode & 0o777)


def test_a_cache_is_nobody_elses_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        folder = _xla.cache_compilations(tmp_path / "above" / "jax")
    finally:
        os.umask(before)
    assert (mode(folder), mode(folder.parent)) == ("0o700", "0o700")


def cache_line():
    return next(line for line in health.checked() if line[0] == "cache")


@pytest.mark.parametrize("how", ["group", "others", "owner", "entry"])
def test_a_cache_that_another_user_may_write_to_is_not_used(how, tmp_path, monkeypatch):
    """Native code is run from it. `filtax doctor` names the folder, and says what to do."""
    if how == "entry" and os.getuid() != 0:
        pytest.skip("only root can give a file to somebody else")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = _xla.cache_compilations()
    assert cache_line() == ("cache", f"{folder}, 0 compiled programs", True)
    folder.chmod({"group": 0o770, "others": 0o707}.get(how, 0o700))
    if how == "entry":
        (folder / "planted-cache").write_bytes(b"native code")
        os.chown(folder / "planted-cache", 65534, -1)
    if how == "owner":
        monkeypatch.setattr(_xla.os, "getuid", lambda: folder.stat().st_uid + 1)
    jax.config.update("jax_compilation_cache_dir", None)
    assert _xla.cache_compilations() is None
    _, found, well = cache_line()
    assert not well
    assert found.startswith(f"{folder} is not yours alone: it is not used")


def test_a_damaged_program_is_written_again(tmp_path):
    """It was compiled at every start. The second process mends what was cut short, and the third says nothing."""
    code = """
import sys, pathlib, warnings, jax
from filtax._xla import cache_compilations
cache_compilations(pathlib.Path(sys.argv[1]))
print(float(jax.jit(lambda x: 2.0 * x)(3.0)))
"""

    def start():
        asked = [sys.executable, "-c", code, str(tmp_path / "jax")]
        return subprocess.run(asked, capture_output=True, text=True, check=True)

    start()
    entries = sorted((tmp_path / "jax").glob("*-cache"))
    whole = [entry.stat().st_size for entry in entries]
    assert entries
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:20])
    assert "Error reading persistent compilation cache entry" in start().stderr
    assert [entry.stat().st_size for entry in entries] == whole
    last = start()  # where XLA itself may say what it does not know of this processor
    assert (last.stdout, "persistent compilation cache" in last.stderr) == ("6.0\n", False)
