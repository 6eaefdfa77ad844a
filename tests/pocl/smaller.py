#!/usr/bin/env python3
"""smaller.py FOLDER SOURCES... -- PoCL with the built-in functions that SOURCES name, and no others.

For each program PoCL has clang read 14,000 declarations (opencl-c.h), and in each process it reads their code
(kernel-*.bc): more than a quarter of the time of cold tests. FOLDER/share becomes links to PoCL's own files but for these two,
which are left with the functions that are wanted, and what those call; FOLDER/vendors, the system's drivers with this
PoCL, is for OCL_ICD_VENDORS. A function that is missing is an error of the program's build. Where PoCL's files are not
as expected, FOLDER/vendors has the system's drivers, and a line says so.
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

EXTERNAL, INTERNAL = 0, 8  # of LLVMLinkage


class Unexpected(Exception):
    pass


def words_of(sources):
    words = set()
    for source in sources:
        words |= set(re.findall(r"[A-Za-z_]\w*", pathlib.Path(source).read_text(errors="replace")))
    return words


def wanted(name, words):
    """Whether words have it, or what it is made of by `##`: a vector's width, or the type that is converted to."""
    return bool({name, re.sub(r"\d", "", name), re.sub(r"^convert_[a-z]+\d*$", "convert_", name)} & words)


def declarations(text, words):
    """The header with those of its declarations whose function is one of words, and the names of the others."""
    text = re.sub(r"//[^\n]*|/\*[\s\S]*?\*/", "", text.replace("\\\n", " "))
    kept, left_out, statement = [], set(), ""
    for line in text.split("\n"):
        if line.startswith("#") and not statement:
            kept.append(line)
        elif line.strip():
            statement += line + "\n"
            if ";" in line:
                bare = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", statement)
                name = re.search(r"(\w+)\s*\(", bare)
                if name and not wanted(name.group(1), words):
                    left_out.add(name.group(1))
                else:
                    kept.append(statement.rstrip())
                statement = ""
    return "\n".join(kept) + "\n", left_out


def function_name(symbol):
    """That of a function in C++'s mangled form, as PoCL calls it or as OpenCL C does."""
    mangled = re.match(r"_Z(\d+)(.*)", symbol)
    name = mangled.group(2)[: int(mangled.group(1))] if mangled else symbol
    return name.removeprefix("_cl_")


def link(llvm, module, names, before, after):
    """Gives the functions in names that are defined with one linkage the other one."""
    function = llvm.LLVMGetFirstFunction(module)
    while function:
        size = ctypes.c_size_t()
        name = llvm.LLVMGetValueName2(function, ctypes.byref(size))
        if (not llvm.LLVMIsDeclaration(function) and llvm.LLVMGetLinkage(function) == before
                and function_name(ctypes.string_at(name, size.value).decode()) in names):
            llvm.LLVMSetLinkage(function, after)
        function = llvm.LLVMGetNextFunction(function)


def code(llvm, source, target, left_out):
    """Writes the bitcode file source to target without the functions in left_out that no other one calls."""
    buffer, module, message = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_char_p()
    if llvm.LLVMCreateMemoryBufferWithContentsOfFile(os.fsencode(source), ctypes.byref(buffer), ctypes.byref(message)):
        raise Unexpected(message.value.decode())
    if llvm.LLVMParseBitcode2(buffer, ctypes.byref(module)):
        raise Unexpected(f"{source} is no bitcode of this LLVM")
    link(llvm, module, left_out, EXTERNAL, INTERNAL)
    if llvm.LLVMRunPasses(module, b"globaldce", None, llvm.LLVMCreatePassBuilderOptions()):
        raise Unexpected("LLVM removes no functions")
    link(llvm, module, left_out, INTERNAL, EXTERNAL)  # what is still called, which PoCL looks up by its name
    if llvm.LLVMWriteBitcodeToFile(module, os.fsencode(target)):
        raise Unexpected(f"{target} can't be written")


def smaller(library, folder, sources):
    """Makes a PoCL in folder, and returns the path of its library."""
    real = library.resolve().parent
    share = real / "../../share/pocl"  # where PoCL looks, from its own library
    header = share / "include/opencl-c.h"
    if not header.is_file():
        raise Unexpected(f"there is no {header}")
    needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    found = re.search(r"=> (\S*/libLLVM\S*)", needed)
    if not found:
        raise Unexpected(f"{library} is not linked with an LLVM of its own")
    llvm = ctypes.CDLL(found.group(1))
    for name in ("LLVMGetFirstFunction", "LLVMGetNextFunction", "LLVMGetValueName2", "LLVMCreatePassBuilderOptions",
                 "LLVMRunPasses"):
        getattr(llvm, name).restype = ctypes.c_void_p
    for name, values in {"LLVMGetFirstFunction": 1, "LLVMGetNextFunction": 1, "LLVMIsDeclaration": 1,
                         "LLVMGetLinkage": 1, "LLVMGetValueName2": 2, "LLVMParseBitcode2": 2}.items():
        getattr(llvm, name).argtypes = [ctypes.c_void_p] * values
    llvm.LLVMSetLinkage.argtypes = [ctypes.c_void_p, ctypes.c_int]
    llvm.LLVMRunPasses.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
    llvm.LLVMWriteBitcodeToFile.argtypes = [ctypes.c_void_p, ctypes.c_char_p]

    text, left_out = declarations(header.read_text(), words_of(sources))
    there, files = folder / "lib/tern", folder / "share/pocl"
    for made in (there, files / "include"):
        made.mkdir(parents=True)
    for entry in [*real.glob("libpocl*"), *real.glob("pocl")]:
        (there / entry.name).symlink_to(entry)
    for entry in header.parent.iterdir():
        if entry.name != header.name:
            (files / "include" / entry.name).symlink_to(entry.resolve())
    (files / "include" / header.name).write_text(text)
    before = after = 0
    for entry in share.resolve().iterdir():
        # One for each kind of processor; those of older ones stay whole, as few have them.
        if entry.suffix == ".bc" and re.search("avx2|avx512", entry.name):
            code(llvm, entry, files / entry.name, left_out)
            before += entry.stat().st_size
            after += (files / entry.name).stat().st_size
        elif entry.is_file():
            (files / entry.name).symlink_to(entry)
    print(f"PoCL without {len(left_out)} functions: {len(text) / header.stat().st_size:.2f} of its declarations,"
          f" {after / max(before, 1):.2f} of their code")
    return there / library.name


def loaded(name):
    """The path of a library that the dynamic linker finds by that name."""
    try:
        ctypes.CDLL(name)
    except OSError as error:
        raise Unexpected(str(error)) from error
    base = name.rsplit("/", 1)[-1].split(".so")[0]
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if f"/{base}.so" in line:
            return pathlib.Path(line.split(maxsplit=5)[5])
    raise Unexpected(f"{name} is not loaded")


def main(folder, sources):
    shutil.rmtree(folder, ignore_errors=True)
    vendors = folder / "vendors"
    vendors.mkdir(parents=True)
    for driver in sorted(pathlib.Path("/etc/OpenCL/vendors").glob("*.icd")):
        library = driver.read_text().strip()
        if "libpocl" in library:
            try:
                library = smaller(loaded(library), folder, sources)
            except (Unexpected, OSError) as why:
                print(f"{why}: tests use PoCL as it is installed")
        (vendors / driver.name).write_text(f"{library}\n")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).absolute(), sys.argv[2:])
