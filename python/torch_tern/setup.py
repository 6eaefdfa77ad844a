"""Builds the extension with the C++ compiler alone ($CXX, by default c++), one process per core.

libtern and its headers are found by pkg-config, by TERN_PREFIX (what `cmake --install` was given),
or in the source tree that this folder is part of (TERN_BUILD_DIR, by default build/ or build/dev, and
TERN_INCLUDE_DIR, by default include/).
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
    """That of tern in a source tree, else of the sdist."""
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

        # Most of the work is to parse PyTorch's headers: done once.
        header = folder / "torch_tern.h"
        headers = [pathlib.Path(path) for path in extension.depends]
        newest = max(path.stat().st_mtime for path in headers)
        precompiled = folder / "torch_tern.h.gch"
        if not precompiled.exists() or precompiled.stat().st_mtime < newest:
            header.write_text(f'#include "{HERE}/csrc/torch_tern.h"\n')
            subprocess.check_call([*compiler, *flags, "-x", "c++-header", str(header), "-o",
                                   str(precompiled)])

        def compile_one(source):
            target = folder / (pathlib.Path(source).stem + ".o")
            if target.exists() and target.stat().st_mtime > max(
                    newest, (HERE / source).stat().st_mtime):
                return str(target)
            subprocess.check_call([*compiler, *flags, "-Winvalid-pch", "-include", str(header),
                                   "-c", source, "-o", str(target)])
            return str(target)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compile_one, extension.sources))
        libraries = cpp_extension.library_paths()
        output = pathlib.Path(self.get_ext_fullpath(extension.name))
        output.parent.mkdir(parents=True, exist_ok=True)
        subprocess.check_call([
            *compiler, "-shared", "-o", str(output), *objects, f"-L{tern_folder}", "-ltern_names",
            "-ltern", *[f"-L{path}" for path in libraries], "-ltorch_cpu", "-lc10",
            f"-Wl,-rpath,$ORIGIN:{tern_folder}", "-s"])


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
