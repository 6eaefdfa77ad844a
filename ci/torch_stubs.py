"""Makes stand-ins for the CUDA libraries that PyTorch's wheel of PyPI is linked with, so that its
part for the cpu runs without them (they are gigabytes). Each function returns cudaErrorNoDevice.

    torch_stubs.py SITE_PACKAGES FOLDER"""
import collections
import pathlib
import re
import subprocess
import sys

NO_DEVICE = 100
SYSTEM = ("GLIBC", "GCC", "CXXABI", "GLIBCXX", "GOMP")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", str(library)))


def symbols(library, which):
    """(name, version) of the symbols that a library defines, or that it wants and has no default."""
    for line in output("nm", "-D", which, str(library)).splitlines():
        *kind, name = line.split()
        if kind[-1] not in ("w", "v"):
            name, _, version = name.partition("@")
            yield name, version.lstrip("@")


def versions(library):
    """The versions that a library wants, by the library that is to have them."""
    of, file = collections.defaultdict(set), None
    for line in output("readelf", "-V", str(library)).splitlines():
        found = re.search(r"File: (\S+)", line)
        file = found.group(1) if found else file
        found = re.search(r"Name: (\S+)\s+Flags", line)
        if found and file:
            of[file].add(found.group(1))
    return of


def compile_stub(folder, soname, by_version):
    code = folder / (soname + ".c")
    script = folder / (soname + ".map")
    names = sorted({name for group in by_version.values() for name in group})
    code.write_text("".join(f"int {name}(void) {{ return {NO_DEVICE}; }}\n" for name in names))
    script.write_text("".join(
        f"{version} {{ {'global: ' if group else ''}{' '.join(n + ';' for n in sorted(group))} }};\n"
        for version, group in by_version.items() if version))
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", str(folder / soname), f"-Wl,-soname,{soname}",
                    *([f"-Wl,--version-script={script}"] if script.read_text() else []), str(code)],
                   check=True)


def main():
    libraries = sorted(pathlib.Path(sys.argv[1]).glob("torch/lib/*.so*"))
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    known = output("ldconfig", "-p") + " ".join(library.name + " " for library in libraries)
    missing = {name for library in libraries for name in needed(library) if name + " " not in known}
    defined = {name for library in libraries for name, _ in symbols(library, "--defined-only")}
    wanted, owners = collections.defaultdict(set), collections.defaultdict(set)
    for library in libraries:
        for owner, names in versions(library).items():
            owners[owner] |= names
        for name, version in symbols(library, "--undefined-only"):
            if name not in defined and not version.startswith(SYSTEM):
                wanted[version].add(name)
    loose = {name for name in wanted[""] if name.startswith(("cu", "nv", "nccl"))}
    for soname in missing:
        groups = {version: wanted[version] for version in owners.get(soname, ())}
        # A symbol without a version may be any library's.
        compile_stub(folder, soname, groups or {"": loose})
    print("stand-ins for", " ".join(sorted(missing)) or "nothing")


if __name__ == "__main__":
    main()
