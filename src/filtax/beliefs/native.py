r"""Passes over large matrices on a CPU, and the algebra between them, in C (the folder `c`), where there is a compiler.

XLA's products of a few long rows keep one core busy, and read the rows more often than need be; LAPACK's threads wait
for each other at full speed; and cores hand each other what XLA divides now by rows, now by columns. Here XLA's threads
share each pass, a core has the same share in the next one, and a row is read once: a step of LoFi takes less than half
the time. The source is compiled when the first program of that kind is traced (about a second, once on a machine:
the result lies in the user's cache), by `$CC`, `cc`, `gcc` or `clang`. Where there is none, or FILTAX_NATIVE=0, matrix
products serve, and give the same numbers up to rounding.

float32 only. `vmap` runs a kernel once for each case; its derivative is that of the products it stands for.
"""

import ctypes
import functools
import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from filtax._xla import is_private, make_private, usual_cache

__all__ = [
    "DENSE",
    "SMALL",
    "applied",
    "caught_up",
    "cut",
    "downdated",
    "explained",
    "gram",
    "left_over",
    "library",
    "lowered",
    "narrowed",
    "reached",
    "rooted",
    "serves",
    "shown",
    "turned",
    "usable",
]

SMALL = ("explained", "lowered")  # of the small algebra, by the names they have there
DENSE = ("applied", "caught_up", "reached", "downdated", "narrowed")
NAMES = ("shown", "left_over", "gram", "cut", "turned", "rooted", *SMALL, *DENSE)
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-shared", "-fPIC")
FOLDER = pathlib.Path(__file__).parent / "c"


@functools.cache
def usable() -> bool:
    """Whether such kernels run here: asked for, compiled, and known to XLA.

    >>> usable() in (True, False)
    True
    """
    if os.environ.get("FILTAX_NATIVE", "1") == "0":
        return False
    try:
        held = ctypes.CDLL(str(library()))
        for name in NAMES:
            handler = jax.ffi.pycapsule(getattr(held, f"filtax_{name}"))
            jax.ffi.register_ffi_target(f"filtax_{name}", handler, platform="cpu")
        return True
    except Exception:  # whatever is missing: there is another way
        return False


def serves(A: Float[Array, "K D"]) -> bool:
    """Whether there are kernels for such an array: in float32, on a CPU that is one device.

    >>> serves(jnp.ones((2, 3), "float16"))
    False
    """
    return A.dtype == jnp.float32 and jax.default_backend() == "cpu" and jax.device_count() == 1 and usable()


def library() -> pathlib.Path:
    """The compiled kernels for this processor and this version of XLA, made now if need be.

    Raises:
        OSError: if there is none and no compiler, or no folder of our own to keep it in.
        subprocess.SubprocessError: if it does not compile them.
    """
    kind = (*(path.read_text() for path in sorted(FOLDER.iterdir())), " ".join(FLAGS), jax.__version__, _processor())
    name = hashlib.sha256("\n".join(kind).encode()).hexdigest()[:16]
    folders = _folders()
    for folder in folders:
        for path in sorted(folder.glob(f"{name}-*.so")):
            if is_private(folder) and is_private(path) and path.stem == f"{name}-{_digest(path)}":
                return path
    try:
        return _made(folders[0], name)
    except (OSError, subprocess.SubprocessError):  # the cache cannot be written to, say
        return _made(folders[1], name)


def _folders() -> tuple[pathlib.Path, pathlib.Path]:
    """The user's cache, and one that lasts as long as the machine runs."""
    return usual_cache() / "native", pathlib.Path(tempfile.gettempdir()) / f"filtax-native-{os.getuid()}"


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _made(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Compile; the name tells of what is inside, so that a file that was cut short is not loaded but made anew."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang"))), None)
    if compiler is None:
        raise OSError("no C compiler")
    make_private(folder)
    if not is_private(folder):
        raise OSError(f"{folder} is open to others")
    with tempfile.TemporaryDirectory(dir=folder) as work:
        draft = pathlib.Path(work) / "draft.so"
        sources = sorted(map(str, FOLDER.glob("*.c")))
        command = [compiler, *FLAGS, f"-I{jax.ffi.include_dir()}", *sources, "-o", str(draft)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        held = ctypes.CDLL(str(draft))  # what a compiler calls done may be none: it must not lie in the cache for good
        if not all(hasattr(held, f"filtax_{name}") for name in NAMES):
            raise OSError(f"{compiler} made no kernels")
        draft.chmod(0o700)
        path = folder / f"{name}-{_digest(draft)}.so"
        os.replace(draft, path)
    return path


def _processor() -> str:
    """What tells one processor from another that cannot run the same instructions."""
    try:
        told = pathlib.Path("/proc/cpuinfo").read_text()
        return next(line for line in told.splitlines() if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return f"{platform.machine()} {platform.processor()} {platform.node()}"


def shown(U: Array, J: Array, used: Array) -> Array:
    """U Jᵀ (K, O) of the rows in use."""
    return _call("shown", (len(U), len(J)))(U, J, used)


def left_over(U: Array, J: Array, V: Array, c: Array, used: Array) -> tuple[Array, Array]:
    """P = J diag(V) - c U (O, D), and P diag(1 / V) Pᵀ (O, O)."""
    return tuple(_call("left_over", J.shape, (len(J), len(J)))(U, J, V, -c, used))


def gram(U: Array, weight: Array, used: Array, skip: Array) -> Array:
    """U diag(w) Uᵀ (K, K) of the rows in use; zero in the block of the first `skip` rows."""
    return _call("gram", (len(U), len(U)))(U, weight, used, skip)


def cut(free: Array, rows: Array, turn: Array, used: Array, rank: int) -> tuple[Array, Array, Array]:
    """V, U with its first `rank` rows written over by those of turnᵀ U, and their Gram matrix (rank, rank)."""
    call = _call("cut", free.shape, rows.shape, (rank, rank), aliases={1: 1})
    return tuple(call(free, rows, turn.T, used))


def applied(A: Array, J: Array) -> Array:
    """A Jᵀ (D, O) of a square matrix."""
    return _call("applied", J.T.shape)(A, J)


def caught_up(A: Array, u: Array, J: Array) -> tuple[Array, Array]:
    """A - u uᵀ with zeros on its diagonal, written over A, and that times Jᵀ (D, 1)."""
    return tuple(_call("caught_up", A.shape, J.T.shape, aliases={0: 0})(A, u, J))


def reached(A: Array, J: Array) -> Array:
    """J A (O, D)."""
    return _call("reached", J.shape)(A, J)


def downdated(A: Array, U: Array, diagonal: Array) -> Array:
    """A - U Uᵀ with a diagonal that is known, written over A."""
    return _call("downdated", A.shape, aliases={0: 0})(A, U, U.T, diagonal)


def narrowed(A: Array, V: Array, C: Array) -> tuple[Array, Array]:
    """A - (A Vᵀ) C, written over A, and A Vᵀ (D, O)."""
    return tuple(_call("narrowed", A.shape, V.T.shape, aliases={0: 0})(A, V, C))


def explained(s: Array, shed: Array, root: Array, used: Array) -> tuple[Array, Array, Array]:
    """What `algebra.explained` means."""
    (K, O) = s.shape
    return tuple(_call("explained", (K, O), (O, K), (O, O))(s, shed, root, used))


def lowered(C: Array, Y: Array) -> Array:
    """C⁻¹ Y for lower triangular C."""
    return _call("lowered", Y.shape)(C, Y)


def rooted(A: Array) -> Array:
    """Lower root of a symmetric matrix (K, K); all NaN where there is none."""
    return _call("rooted", A.shape)(A)


def turned(gram: Array) -> Array:
    """Eigenvectors of a symmetric matrix as columns (K, K), that of the largest eigenvalue first."""
    return _call("turned", gram.shape)(gram)


def _call(name: str, *shapes: tuple[int, ...], aliases: dict[int, int] | None = None) -> Callable[..., Any]:
    results = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    told = results if len(results) > 1 else results[0]
    return jax.ffi.ffi_call(f"filtax_{name}", told, vmap_method="sequential", input_output_aliases=aliases)
