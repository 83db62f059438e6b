"""Kernels in CUDA C run on any machine: a thread for each of theirs, and `block.hpp` in the place of CUDA."""

import atexit
import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from filtax._kernels import cuda_kernels

FOLDER = Path(__file__).parent
OPTIONS = ("-std=c++20", "-O0", "-w", "-fPIC", "-pthread")
REPLACED = [
    (
        r'asm volatile\("cp\.async\.ca[^"]*"\s*:: "r"\(\(unsigned\)__cvta_generic_to_shared\((.*?)\)\), '
        r'"l"\((.*?)\)\);',
        r"*(\1) = *(\2);",
    ),
    (r'asm volatile\("cp.async.wait_all;"\);', ""),
    (r'asm\("rsqrt[^;]*;" : "=f"\(y\) : "f"\(x\)\);', "y = 1.f / std::sqrt(x);"),
    (r"extern __shared__ (?:__align__\(16\) )?(\w+) (\w+)\[\];", r"\1* \2 = (\1*)given;"),
]


@functools.cache
def header():
    """A folder where what every kernel includes lies compiled: two thirds of the time of a kernel went there."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    text = folder / "block.hpp"
    text.write_text((FOLDER / "block.hpp").read_text())
    subprocess.run(["g++", *OPTIONS, "-x", "c++-header", str(text), "-o", f"{text}.gch"], check=True)
    return folder


class Machine:
    """Launches kernels as `cuda_kernels.kernel` does, but compiles them for this machine."""

    def __init__(self, folder: Path):
        self.folder, self.held = folder, {}

    def kernel(self, source, name, shapes, grid, block, shared=0, aliases=None, **constants):
        key = name, tuple(sorted(constants.items()))
        if key not in self.held:
            self.held[key] = self.built(source, name, constants)
        many = isinstance(shapes, tuple)

        def call(*given):
            given = [np.array(a) for a in given]
            fresh = [
                np.full(s.shape, 0 if s.dtype != np.float32 else np.nan, s.dtype)
                for s in (shapes if many else (shapes,))
            ]
            for operand, result in (aliases or {}).items():
                fresh[result] = given[operand]
            held = [*given, *fresh]
            cases = grid[1] if len(grid) > 1 else 1
            self.held[key](grid[0], cases, block[0], (ctypes.c_void_p * len(held))(*(a.ctypes.data for a in held)))
            fresh = [jnp.asarray(a) for a in fresh]
            return tuple(fresh) if many else fresh[0]

        return call

    def built(self, source, name, constants):
        source = source.replace(cuda_kernels.source("ptx"), '#include "ptx.hpp"\n')
        for before, after in REPLACED:
            source = re.sub(before, after, source, flags=re.DOTALL)
        lines = ['#include "block.hpp"', *(f"#define {key} {value}" for key, value in constants.items()), source]
        call = f"launch(blocks, cases, threads, [=] {{ given_to({name}, a); }});"
        lines.append(f'extern "C" void run(int blocks, int cases, int threads, void** a) {{ {call} }}')
        text, library = self.folder / f"{name}.cpp", self.folder / f"{name}{len(self.held)}.so"
        text.write_text("\n".join(lines))
        options = [*OPTIONS, "-shared", f"-I{header()}", f"-I{FOLDER}"]
        subprocess.run(["g++", *options, str(text), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library)).run
