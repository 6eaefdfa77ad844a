#!/usr/bin/env python3
"""run.py PROGRAM NAME EXPECTED -- runs a program of the documents in a folder of its own and compares what it prints with
the document's output blocks. `...` in a line stands for anything, a line of it alone for any lines. Status 77 of the
program, which says what it lacks, is passed on."""
import difflib
import re
import subprocess
import sys
import tempfile


def pattern(lines):
    out = []
    for line in lines:
        text = ".*".join(re.escape(part) for part in line.rstrip().split("..."))
        out.append("(?:.*\n)*?" if line.strip() == "..." else text + " *\n")
    return re.compile("".join(out))


def main(program, name, expected):
    with open(expected, encoding="utf-8") as file:
        wanted = file.read().split("\n")[:-1]
    with tempfile.TemporaryDirectory(prefix="tern-guide-") as folder:
        done = subprocess.run([program, name], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", check=False)
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        sys.stdout.write(done.stdout)
        print(f"{name}: status {done.returncode}")
        return 77 if done.returncode == 77 else 1
    # Documents show what the cpu prints.
    printed = re.sub(r",\s+device='(?:opencl|cuda):[0-9]+'", "", done.stdout)
    if pattern(wanted).fullmatch(printed):
        return 0
    print(f"{name}: printed something else than its document says:")
    sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(wanted, printed.split("\n")[:-1], "document",
                                                                      "printed", lineterm=""))
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
