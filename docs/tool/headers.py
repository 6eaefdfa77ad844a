"""headers.py -- reads the public headers: pages of sections of groups of declarations with their text.

A comment covers the declarations up to the next empty line or comment; one behind a declaration is that
declaration's own. A comment that begins with ---- is the title of a section, and its text if there is more of it.
What only C++ sees is left out, and so are macros whose names end in _, which are parts of others."""
import os
import re

CODE = re.compile(r"\btern_[a-z0-9_]+\b|\bTERN_[A-Z0-9_]+\b")


class Item:
    """A declaration: kind (function, type, macro), names, its C text, its comment and that of its group."""

    def __init__(self, kind, names, code, text):
        self.kind, self.names, self.code, self.text = kind, names, code, text
        self.lead = ""  # the text that the group began with, where it is another
        self.summary = ""  # what it does, in a sentence of docs/tool/summaries.txt

    def as_dict(self):
        d = {"kind": self.kind, "names": self.names, "code": self.code, "text": self.text}
        if self.lead:
            d["context"] = self.lead
        return d


class Section:
    def __init__(self, title="", text=""):
        self.title, self.text, self.groups = title, text, [[]]
        self.families = None  # once asked for

    def items(self):
        return [item for group in self.groups for item in group]


class Page:
    """One header: its path below include/, what its first comment says, sections."""

    def __init__(self, path, intro):
        self.path, self.intro, self.sections = path, intro, [Section()]
        head, _, rest = intro.partition("\n\n")
        name, _, title = head.partition(" -- ")
        self.title = " ".join(title.split())
        self.text = rest if rest else ""
        self.slug = re.sub(r"[/.]", "_", path[len("tern/"):].removesuffix(".h"))

    def items(self):
        return [item for section in self.sections for item in section.items()]

    def functions(self):
        return [item for item in self.items() if item.kind == "function"]


def comment_text(raw):
    """The words of a comment, without its stars."""
    body = raw.strip()[2:-2]
    lines = [re.sub(r"^ ?\* ?", "", line.strip("\n").lstrip() if i else line, count=1) if i else line.strip()
             for i, line in enumerate(body.split("\n"))]
    return "\n".join(line.rstrip() for line in lines).strip("\n").rstrip()


def without_cpp(lines):
    """The lines that a C compiler would see, as far as __cplusplus is asked for."""
    out, stack = [], []  # each: (is about C++, seen by C)
    for line in lines:
        stripped = line.strip()
        if re.match(r"#\s*if", stripped):
            cpp = "__cplusplus" in stripped
            hidden = cpp and not re.match(r"#\s*if(ndef|\s+!defined)", stripped)
            stack.append([cpp, not hidden])
            continue
        if stripped.startswith("#else") or stripped.startswith("#elif"):
            if stack[-1][0]:
                stack[-1][1] = not stack[-1][1]
            else:
                stack[-1][1] = False  # the first way of others
            continue
        if stripped.startswith("#endif"):
            stack.pop()
            continue
        if all(seen for _, seen in stack):
            out.append(line)
    return out


def squeeze(code):
    code = re.sub(r"\bTERN_API\s+", "", code)
    code = re.sub(r"\s*__attribute__\(\(.*?\)\)\)?|\s*TERN_PRINTF_\([^)]*\)", "", code, flags=re.S)
    code = re.sub(r"\s+", " ", code).strip()
    return code.replace(" )", ")").replace("( ", "(")


class Reader:
    def __init__(self, path, lines):
        self.lines, self.at, self.path = lines, 0, path
        self.page = None
        self.text = ""      # of the comment that covers what follows
        self.fresh = False  # no function was covered by it yet

    def section(self):
        return self.page.sections[-1]

    def add(self, kind, names, code, own):
        text = own or (self.text if kind == "function" or self.fresh else "")
        self.section().groups[-1].append(Item(kind, names, code, text))
        self.fresh = self.fresh and kind != "function"

    def take_until(self, done):
        """Lines from here on up to the first for which done is true, with a comment that follows there."""
        taken = [self.lines[self.at]]
        while not done(taken) and self.at + 1 < len(self.lines):
            self.at += 1
            taken.append(self.lines[self.at])
        text = "\n".join(taken)
        opened = text.rfind("/*")
        while opened >= 0 and text.rfind("*/") < opened and self.at + 1 < len(self.lines):
            self.at += 1
            text += "\n" + self.lines[self.at]
        self.at += 1
        return text

    def read(self):
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip():
                self.blank()
            elif line.startswith("/*"):
                self.comment()
            elif line.startswith("TERN_API "):
                self.function()
            elif line.startswith(("typedef ", "enum ", "struct ")):
                self.type()
            elif re.match(r"#\s*define", line):
                self.macro()
            else:
                self.at += 1
        for section in self.page.sections:
            give_context([item for item in section.items() if item.kind == "function"])
        return self.page

    def blank(self):
        self.at += 1
        self.text = ""
        if self.section().groups[-1]:
            self.section().groups.append([])

    def comment(self):
        taken = self.take_until(lambda t: True)
        text = comment_text(taken[:taken.rfind("*/") + 2])
        if self.page is None:
            self.page = Page(self.path, text)
        elif "clang-format" in text:
            pass
        elif text.startswith("----"):
            first, _, rest = text.partition("\n")
            title = first.strip("- ")
            self.page.sections.append(Section(title, rest.strip("\n")))
            self.text = rest.strip("\n")
        else:
            self.text = text
        self.fresh = True

    def function(self):
        text = self.take_until(lambda t: ";" in t[-1])
        code, _, rest = text.partition(";")
        own = comment_text(rest) if rest.strip().startswith("/*") else ""
        code = squeeze(code)
        name = re.search(r"\b(tern_[a-z0-9_]+)\(", code)
        self.add("function", [name.group(1)], code + ";", own)

    def type(self):
        line = self.lines[self.at]
        whole = line.rstrip().endswith(";") or (";" in line and "{" not in line) or "{" in line and "}" in line
        closed = (lambda t: True) if whole else \
            (lambda t: re.match(r"^}.*;", t[-1]) or ("{" not in "\n".join(t) and ";" in t[-1]))
        text = self.take_until(closed)
        code = text
        own = ""
        if whole and "/*" in text:
            cut = text.index("/*")
            code, own = text[:cut].rstrip(), comment_text(text[cut:])
        names = re.findall(r"\btern_[a-z0-9_]+\b(?=;)|\(\*(tern_[a-z0-9_]+)\)", code.replace("\n", " "))
        names = [n for n in names if n] or re.findall(r"\b(tern_[a-z0-9_]+);", code)
        names += re.findall(r"\b(TERN_[A-Z0-9_]+)\b(?=\s*[=,}/\n])", code)
        opaque = re.match(r"typedef struct (\w+) \1;$", code.strip())
        self.add("type", list(dict.fromkeys(names)), code, own or ("an opaque handle" if opaque and not self.text else ""))

    def macro(self):
        text = self.take_until(lambda t: not t[-1].endswith("\\"))
        name = re.match(r"#\s*define\s+(\w+)(\([^)]*\))?", text)
        if name.group(1).endswith("_") and not name.group(1).startswith("tern_") or name.group(1).endswith("_H") \
                or not re.match(r"tern_|TERN_|DLPACK", name.group(1)):
            return
        body = text[name.end():]
        own = ""
        if "/*" in body:
            own = comment_text(body[body.index("/*"):])
            body = body[:body.index("/*")]
        short = len(text.split("\n")) == 1 and not name.group(2)
        code = "#define " + name.group(1) + (name.group(2) or "") + (" " + " ".join(body.split()) if short else "")
        self.add("macro", [name.group(1)], code.rstrip(), own)


LEANS = re.compile(r"(The same|Does the same|Does what|Over|Along|Its?\b|Whether it|As |[Ii]nto x|a number|y a|Of |On|What it|The "
                   r"(next|smallest|first|last)|To |With|By |And back|\\* is )|.*\\b(likewise|too|as above)\\b")


def base_of(name, functions):
    """The function whose form this one is, by its name: tern_sum of tern_sum_dim, tern_add of tern_add_scalar_."""
    bases = [f for f in functions if (name + "_").startswith(f.names[0].rstrip("_") + "_")]
    return max(bases, key=lambda f: len(f.names[0])) if bases else None


def families(section):
    """The functions of a section, each first of a family with its forms behind it: those of its name whose text adds to its text."""
    if section.families is not None:
        return section.families
    functions = [item for item in section.items() if item.kind == "function"]
    found = {}
    for i, item in enumerate(functions):
        base = base_of(item.names[0], functions[:i])
        while base is not None and base.names[0] not in found:
            base = base_of(base.names[0], functions[:functions.index(base)])
        found.setdefault(base.names[0] if base else item.names[0], []).append(item)
    return list(found.values())


# What stands behind a prototype in few words, said whole where there is room: on a page of its own.
WHOLE = {"in place": "The same in place: the result is written into x, which is returned.", "y is a number": "The same with a number for y.",
         "y is a number; in place": "The same with a number for y, written into x, which is returned.",
         "Of a list of leaves.": "The same for a list of leaves in place of a module.", "Over dims.": "The same over dims.",
         "Along dim.": "The same along dim."}


def say_whole(functions, known):
    """Texts of few words as sentences: those of WHOLE, and a bare name, of which the function is another name or the module."""
    for item in functions:
        name, word = item.names[0], item.text.rstrip(".")
        other = word if word in known else "tern_" + word
        if item.text in WHOLE or item.text.replace("Into", "into").rstrip(".") in WHOLE:
            item.text = WHOLE.get(item.text) or WHOLE[item.text.replace("Into", "into").rstrip(".")]
        elif other in known and other != name:
            item.text = f"A module that calls {other}." if name.startswith("tern_nn_") else f"Another name of {other}."


def summaries(root):
    """function -> sentence, by docs/tool/summaries.txt."""
    with open(os.path.join(root, "docs", "tool", "summaries.txt"), encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(": ", 1) for line in file if not line.startswith("#"))


def few_words(item):
    """Whether the text of a function is a formula, a shape, or a name."""
    return len(re.findall(r"\w{2,}", item.lead + " " + item.text)) < 4


def give_context(functions):
    """A text that leans on another's, such as "Over dims.", is shown behind that one: the text of the function whose
    name this name begins with, else of the one before."""
    for i, item in enumerate(functions):
        name = item.names[0]
        base = base_of(name, functions[:i])
        if base is None and LEANS.match(item.text) and len(item.text) < 60 and i:
            base = functions[i - 1]
        whole = re.match(r"[A-Z][a-z]+s \S+|A module ", item.text) and not LEANS.match(item.text)
        if base is not None and not whole and len(item.text) < 120 and base.text != item.text:
            item.lead = base.lead if LEANS.match(base.text) and base.lead else base.text


def read_header(root, path):
    with open(os.path.join(root, "include", path), encoding="utf-8") as file:
        return Reader(path, without_cpp(file.read().split("\n"))).read()


def headers_of(root):
    """Paths of all public headers, tern.h first, then those of the top, then those of folders."""
    found = []
    for folder, _, files in os.walk(os.path.join(root, "include")):
        found += [os.path.relpath(os.path.join(folder, f), os.path.join(root, "include"))
                  for f in files if f.endswith(".h")]
    return sorted(found, key=lambda p: (p != "tern/tern.h", p.count("/"), p))


def read_all(root):
    pages = [read_header(root, path) for path in headers_of(root)]
    known = {item.names[0] for page in pages for item in page.functions()}
    short = summaries(root)
    for page in pages:
        say_whole(page.functions(), known)
        for item in page.functions():
            item.summary = short.get(item.names[0], "")
    return pages


def sentences(text):
    """The sentences of prose; code that is set off is none."""
    prose = " ".join(line for line in text.split("\n") if not line.startswith("  "))
    return [s.strip() for s in re.split(r"(?<=[.;])\s+(?=[A-Z`(\"*])", " ".join(prose.split())) if s.strip()]
