"""environment.py -- the variables of the environment, for docs/environment.md and the manual page of the tool.

src/base/env.def is their one table. Its rows stand in docs/environment.md between two comments and in src/tool/tern.1 behind
`.SH ENVIRONMENT`; `python3 docs/tool environment` writes them there, and docs.check compares."""
import os
import re

BEGIN, END = "<!-- variables: docs/tool environment -->\n", "<!-- end of variables -->\n"
PAGE, MANUAL = "docs/environment.md", "src/tool/tern.1"
TEXT = r'\s*"((?:[^"\\]|\\.)*)"\s*'


def read(root):
    """(name, kind, values, by default, what for) of each variable, and (name, whose) of the others."""
    with open(os.path.join(root, "src", "base", "env.def"), encoding="utf-8") as file:
        text = file.read()
    plain = lambda words: words.replace('\\"', '"')
    rows = [("TERN_" + m[0], m[1], *(plain(t) for t in m[2:])) for m in
            re.findall(r"^VARIABLE\((\w+),\s*(\w+)," + TEXT + "," + TEXT + "," + TEXT + r"\)", text, re.M)]
    others = re.findall(r"^OTHER\(([\w*]+)," + TEXT + r"\)", text, re.M)
    assert len(rows) == len(re.findall(r"^VARIABLE\(", text, re.M)), "a row of env.def is not understood"
    return rows, others


def table(root):
    rows, others = read(root)
    out = ["| variable | values | default | what for |\n", "|---|---|---|---|\n"]
    for name, _, values, default, purpose in rows:
        shown = ", ".join(f"`{v}`" for v in values.split("|")) if "|" in values else values
        out.append(f"| `{name}` | {shown} | {default} | {purpose} |\n")
    out.append("\nNot tern's own, and left alone: ")
    out.append(", ".join(f"`{name}` ({whose})" for name, whose in others) + ".\n")
    return "".join(out)


def manual(root):
    escaped = lambda text: text.replace("\\", "\\e").replace("-", "\\-").replace("|", ", ")
    out = []
    for name, _, values, default, purpose in read(root)[0]:
        out.append(f".TP\n.B {name}\n{escaped(purpose)}\nValues: {escaped(values)}.\nDefault: {escaped(default)}.\n")
    return "".join(out)


def between(text, begin, end, new):
    """The text with new from begin on, up to end."""
    at = text.index(begin) + len(begin)
    return text[:at] + new + text[text.index(end, at):]


def wanted(root):
    """path -> (its text, its text as the table wants it)."""
    out = {}
    for path, begin, end, new in ((PAGE, BEGIN, END, table(root)), (MANUAL, ".SH ENVIRONMENT\n", ".SH FILES\n", manual(root))):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        out[path] = (text, between(text, begin, end, new))
    return out


def check(root):
    return [f"{path}: its variables are not those of src/base/env.def (python3 docs/tool environment writes them)"
            for path, (text, right) in wanted(root).items() if text != right]


def write(root):
    for path, (text, right) in wanted(root).items():
        if text != right:
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(right)
