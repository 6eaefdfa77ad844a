#!/usr/bin/env python3
"""idioms.py [--write] -- runs the Python of docs/guide/idioms.md under PyTorch and compares what each block prints with the output
below it, which the C beside it prints too (test guide.idioms), and likewise the PyTorch program of docs/home.md. --write puts PyTorch's
output into the guide. Ends with 1 where they differ, with 77 where there is no PyTorch: neither for this Python, nor for the one named by
TERN_TEST_PYTHON, nor for the one that TERN_TEST_TORCH (a libtorch_cpu.so, as ci/pytorch prints it) belongs to."""
import contextlib
import io
import os
import re
import sys
import tempfile

sys.path = [path for path in sys.path if os.path.abspath(path) != os.path.dirname(os.path.abspath(__file__))]  # its torch/ has files
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
PAGE, HOME = os.path.join(DOCS, "guide", "idioms.md"), os.path.join(DOCS, "home.md")
IDIOM = re.compile(r"^```python\n(.*?)^```\n(```c\n.*?^```\n)(?:```output\n(.*?)^```\n)?", re.M | re.S)


def other_python():
    """A Python that has PyTorch, by the environment."""
    library = os.environ.get("TERN_TEST_TORCH", "")
    found = [os.environ.get("TERN_TEST_PYTHON", ""), library.split("/lib/python")[0] + "/bin/python" if library else ""]
    return next((p for p in found if p and os.path.exists(p) and os.path.realpath(p) != os.path.realpath(sys.executable)), None)


def home():
    """The PyTorch program of the first page: 1 where it prints something else than stands below it."""
    with open(HOME, encoding="utf-8") as file:
        code, output = re.search(r"^```python\n(.*?)^```\n```text\n(.*?)^```\n", file.read(), re.M | re.S).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    if printed.getvalue() != output:
        print(f"docs/home.md: PyTorch prints\n{printed.getvalue()}and not\n{output}")
    return printed.getvalue() != output


def main(write):
    try:
        import torch.nn  # noqa: F401
    except ImportError:
        python = other_python()
        if python and "TERN_IDIOMS_AGAIN" not in os.environ:
            os.execve(python, [python, *sys.argv], {**os.environ, "TERN_IDIOMS_AGAIN": "1"})
        print("SKIP: there is no PyTorch (TERN_TEST_PYTHON), the idioms' Python was not run")
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
    wrong += home()
    print(f"{count} idioms under PyTorch {names['torch'].__version__}, {wrong} differ")
    return 1 if wrong and not write else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
