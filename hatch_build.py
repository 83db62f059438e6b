"""Build hook: compile the C kernels of LoFi into the package. Without a compiler the wheel is pure Python and works."""

import importlib.util
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, as `python hatch_build.py`
    BuildHookInterface = object

KERNELS = pathlib.Path(__file__).resolve().parent / "src" / "filtax" / "_kernels"
FLAGS = ("-O3", "-std=gnu11", "-shared", "-fPIC")
LEVELS = ("x86-64-v3", "x86-64-v4") if platform.machine() in ("x86_64", "AMD64") else ("",)
# The oldest version of the declared range: XLA loads handlers that were compiled against an older interface.
HEADERS = "jaxlib>=0.10,<0.11"


def compiler() -> str | None:
    """The C compiler to use, if there is one; FILTAX_BUILD_KERNELS=0 builds a wheel without kernels."""
    wanted = os.environ.get("FILTAX_BUILD_KERNELS", "1") != "0" and os.name == "posix"
    names = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return next(filter(None, map(shutil.which, names)), None) if wanted else None


def build() -> list[pathlib.Path]:
    """Compile one library for each level of instructions; return those that the compiler could make."""
    found, cc = importlib.util.find_spec("jaxlib"), compiler()
    if cc is None or found is None or found.origin is None:
        return []
    headers = pathlib.Path(found.origin).parent / "include"
    sources = sorted(map(str, (KERNELS / "c").glob("*.c")))
    libraries = []
    for level in LEVELS:
        path = KERNELS / f"lofi{level and '-'}{level}.so"
        draft = path.with_suffix(".draft")
        command = [cc, *FLAGS, *([f"-march={level}"] if level else []), f"-I{headers}", *sources, "-o", str(draft)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"filtax: {cc} did not compile {path.name}; plain JAX serves.\n{done.stderr}", file=sys.stderr)
            continue
        os.replace(draft, path)
        libraries.append(path)
    return libraries


class KernelBuildHook(BuildHookInterface):
    """Compile the kernels before hatchling collects the files of a wheel or an editable install."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """The headers of XLA come with jaxlib; they are needed where there is a compiler."""
        return [HEADERS] if compiler() else []

    def initialize(self, version: str, build_data: dict) -> None:
        """Add the libraries to the wheel, which then belongs to this platform but to any version of Python."""
        libraries = build()
        if libraries:
            build_data["artifacts"] += [f"/src/filtax/_kernels/{path.name}" for path in libraries]
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


if __name__ == "__main__":
    print(*(path.name for path in build()), sep="\n")
