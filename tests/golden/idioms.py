#!/usr/bin/env python3
"""idioms.py [--write] -- runs the Python of docs/guide/idioms.md under PyTorch and compares what each block prints with the output
below it, which the C beside it prints too (test guide.idioms). --write puts PyTorch's output there. Ends with 1 where they differ,
with 77 where there is no PyTorch."""
import contextlib
import io
import os
import re
import sys
import tempfile

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "guide", "idioms.md")
IDIOM = re.compile(r"^```python\n(.*?)^```\n(```c\n.*?^```\n)(?:```output\n(.*?)^```\n)?", re.M | re.S)


def main(write):
    try:
        import torch  # noqa: F401
    except ImportError:
        print("SKIP: there is no PyTorch, the idioms' Python was not run")
        return 77
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    names, wrong, count = {}, 0, 0

    def run(match):
        nonlocal wrong, count
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(match.group(1), names)
        count += 1
        if printed.getvalue() != (match.group(3) or ""):
            wrong += 1
            print(f"{match.group(1)}prints\n{printed.getvalue()}and not\n{match.group(3)}")
        output = f"```output\n{printed.getvalue()}```\n" if printed.getvalue() else ""
        return f"```python\n{match.group(1)}```\n{match.group(2)}{output}"

    with tempfile.TemporaryDirectory() as folder:  # for what the idioms save
        before = os.getcwd()
        os.chdir(folder)
        text = IDIOM.sub(run, text)
        os.chdir(before)
    if write:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)
    print(f"{count} idioms under PyTorch {names['torch'].__version__}, {wrong} differ")
    return 1 if wrong and not write else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
