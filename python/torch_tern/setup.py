"""Builds the extension with the C++ compiler alone ($CXX, by default c++), one process a core.

libtern and its headers are found by pkg-config, by TERN_PREFIX (what `cmake --install` was given),
or in the source tree that this folder is part of (TERN_BUILD_DIR, by default build/ or build/dev, and
TERN_INCLUDE_DIR, by default include/). TERN_TORCH_PARTS=1 compiles all in one process. With
TERN_TORCH_BUNDLE=1 the libraries become part of the package.
"""
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

# An installed torch_tern of another PyTorch would end this import of torch, which is to replace it.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent


def version():
    """TERN_TORCH_VERSION, else that of tern in a source tree, else of the sdist."""
    if os.environ.get("TERN_TORCH_VERSION"):
        return os.environ["TERN_TORCH_VERSION"]
    lists = TREE / "CMakeLists.txt"
    if lists.exists():
        found = re.search(r"project\(tern VERSION ([0-9.]+)", lists.read_text())
        if found:
            return found.group(1)
    info = HERE / "PKG-INFO"
    return re.search(r"^Version: (.+)$", info.read_text(), re.M).group(1) if info.exists() else "0"


def find_tern():
    """The flags that compile and link with libtern and libtern_names, and where those lie."""
    prefix = os.environ.get("TERN_PREFIX")
    if prefix:
        for lib in sorted(pathlib.Path(prefix).glob("lib*/libtern.so")) + \
                sorted(pathlib.Path(prefix).glob("lib/*/libtern.so")):
            return [f"-I{prefix}/include"], lib.parent
        sys.exit(f"TERN_PREFIX={prefix} has no lib/libtern.so")
    builds = [pathlib.Path(os.environ["TERN_BUILD_DIR"])] if "TERN_BUILD_DIR" in os.environ else \
        [TREE / "build", TREE / "build" / "dev", TREE / "build" / "release"]
    include = pathlib.Path(os.environ.get("TERN_INCLUDE_DIR", TREE / "include"))
    for build in builds:
        if (build / "libtern.so").exists() and (include / "tern" / "tern.h").exists():
            return [f"-I{include}"], build.resolve()
    ask = ["pkg-config", "tern", "tern_names"]
    try:
        flags = subprocess.check_output([*ask, "--cflags"], text=True).split()
        folder = subprocess.check_output(["pkg-config", "tern", "--variable=libdir"], text=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit("torch_tern needs libtern and its headers: Debian's package libtern-dev, or an "
                 "installed build whose prefix is TERN_PREFIX")
    return flags, pathlib.Path(folder.strip())


class Build(build_ext):
    """One shared library, which no version of Python is compiled into."""

    def get_ext_filename(self, name):
        return os.path.join(*name.split(".")) + ".so"

    def build_extension(self, extension):
        from torch.utils import cpp_extension
        compiler = shlex.split(os.environ.get("CXX", "c++"))
        tern_flags, tern_folder = find_tern()
        folder = pathlib.Path(self.build_temp)
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["-O2", "-g0", "-std=c++20", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra",
                 *tern_flags]
        for include in cpp_extension.include_paths():
            flags += ["-isystem", include]
        flags += shlex.split(os.environ.get("CXXFLAGS", ""))

        # Most of the work is to parse PyTorch's headers and to instantiate their templates: so the
        # sources are compiled together, one part of them a core.
        def compile_part(i, sources):
            unit = folder / f"part{i}.cpp"
            unit.write_text("".join(f'#include "{HERE / source}"\n' for source in sources))
            target = unit.with_suffix(".o")
            subprocess.check_call([*compiler, *flags, "-c", str(unit), "-o", str(target)])
            return str(target)

        n = int(os.environ.get("TERN_TORCH_PARTS") or max(2, min(os.cpu_count() or 2, 6)))
        by_size = sorted(extension.sources, key=lambda source: -(HERE / source).stat().st_size)
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            objects = list(pool.map(compile_part, range(n), [by_size[i::n] for i in range(n)]))
        libraries = cpp_extension.library_paths()
        output = pathlib.Path(self.get_ext_fullpath(extension.name))
        output.parent.mkdir(parents=True, exist_ok=True)
        bundle = os.environ.get("TERN_TORCH_BUNDLE") == "1"
        subprocess.check_call([
            *compiler, "-shared", "-o", str(output), *objects, f"-L{tern_folder}", "-ltern_names",
            "-ltern", *[f"-L{path}" for path in libraries], "-ltorch_cpu", "-lc10",
            "-Wl,-rpath,$ORIGIN" + ("" if bundle else f":{tern_folder}"), "-s"])
        if bundle:
            for name in ("libtern.so", "libtern_names.so"):
                found = sorted(tern_folder.glob(name + ".[0-9]*"), key=lambda path: len(path.name))
                subprocess.check_call(["strip", "-o", str(output.parent / found[0].name),
                                       str(found[0].resolve())])


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=version(), packages=["torch_tern"],
      ext_modules=[Extension("torch_tern.libtorch_tern",
                             sorted(str(path.relative_to(HERE))
                                    for path in HERE.glob("csrc/*.cpp")),
                             depends=sorted(str(path.relative_to(HERE))
                                            for path in HERE.glob("csrc/*.h")))],
      cmdclass={"build_ext": Build, "bdist_wheel": Wheel})
