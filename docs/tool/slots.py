"""slots.py -- what is said of a function in fixed places: arguments, result and its owner, dtypes, errors, PyTorch's name.

The words come from the header's comment, from the tables of names (src/names/*.def), the rows of elementwise
operations (cl_kernels/*.def) and docs/coverage.md; what follows from a type alone (what to free a handle with) from
the prototypes."""
import glob
import os
import re

import documents
from arguments import meaning
from headers import sentences

TYPES = {"FLOATS": "float32, float64, float16, bfloat16",
         "NUMBERS": "float32, float64, float16, bfloat16, int32, int64, uint8",
         "WHOLES": "int32, int64, uint8", "INTS": "int32, int64, uint8, bool",
         "ALL": "float32, float64, float16, bfloat16, int32, int64, uint8, bool", "BOOLS": "all; other types become bool"}
FIRST = "0.1.0"  # the version of what docs/since.txt does not name
CAST = {"FLOAT32": "float32", "WIDEST": "the widest type among the inputs"}


def guides(root):
    """Where the guides use a function: function -> (path, title, the lines of the shortest of their snippets)."""
    out = {}
    for path in documents.documents(root):
        if path.startswith("docs/guide/") and "cheatsheet" not in path:
            text = documents.read(root, path)
            title = text.split("\n")[0].lstrip("# ")
            for block in documents.blocks(text):
                if block.language != "c" or block.hidden or set(block.words) & {"refused", "broken", "internal"}:
                    continue
                for name in set(re.findall(r"\btern_\w+(?=\()", "\n".join(block.lines))):
                    if name not in out or len(block.lines) < len(out[name][2]):
                        out[name] = (path, title, block.lines)
    return out


def since(root):
    """function -> version, by docs/since.txt: lines of a version and the functions that it brought."""
    out = {}
    with open(os.path.join(root, "docs", "since.txt"), encoding="utf-8") as file:
        for words in (line.split() for line in file if not line.startswith("#")):
            out.update({name: words[0] for name in words[1:]})
    return out


class Tables:
    """What the repository's tables know of functions, read once."""

    def __init__(self, root, pages):
        self.types, self.cast, self.signatures, self.torch = {}, {}, {}, {}
        self.free = {}  # type -> function
        self.structs = {}
        self.since = since(root)
        self.examples = guides(root)
        self.rows(root)
        self.names(root)
        self.autocast(root)
        self.coverage(root)
        for page in pages:
            for item in page.items():
                self.note(item)

    def note(self, item):
        if item.kind == "type" and "{" in item.code and item.names:
            self.structs[item.names[0]] = item.code
        match = re.match(r"void (tern_\w+_free)\((?:const )?(tern_\w+) \*\w+\);", item.code)
        if match:
            self.free[match.group(2)] = match.group(1)

    def rows(self, root):
        for path in ("elementwise", "special", "logic"):
            with open(os.path.join(root, "cl_kernels", path + ".def"), encoding="utf-8") as file:
                for row in re.findall(r"^([A-Z]+)(?:_[A-Z0-9]+)?\((\w+), ([A-Z]+), ([A-Z0-9]+)", file.read(), re.M):
                    for form in ("", "_", "_scalar", "_scalar_"):
                        self.types["tern_" + row[1] + form] = TYPES.get(row[2], "")
                        if row[0] in ("UNARY", "BINARY", "TERNARY") and row[3] in CAST and not form.endswith("_"):
                            self.cast["tern_" + row[1] + form] = CAST[row[3]]

    def names(self, root):
        row = re.compile(r'^OPS?\(\w+, "([^"]+)", "([^"]*)",(?: "([^"]*)",)? (.*)\)$', re.M)
        for path in sorted(glob.glob(os.path.join(root, "src", "names", "*.def"))):
            with open(path, encoding="utf-8") as file:
                for name, takes, gives, call in row.findall(file.read()):
                    functions = re.findall(r"\b(tern_\w+)\(", call)
                    if functions:
                        text = f"torch.{name}({takes}) -> {gives or 'Tensor'}"
                        self.signatures.setdefault(functions[0], []).append(text)

    def autocast(self, root):
        """PyTorch's list that an operation is in, by tests/golden/autocast.txt."""
        lists = {"float32": "float32", "lower": "the block's half precision", "widest": "the widest type among the inputs"}
        function = {s.split("(")[0].removeprefix("torch."): f for f, all_of in self.signatures.items() for s in all_of}
        with open(os.path.join(root, "tests", "golden", "autocast.txt"), encoding="utf-8") as file:
            for words in (line.split() for line in file if not line.startswith("#")):
                if words and words[0] in function and words[-1] in lists:
                    self.cast.setdefault(function[words[0]], lists[words[-1]])

    def coverage(self, root):
        space = None
        with open(os.path.join(root, "docs", "coverage.md"), encoding="utf-8") as file:
            for line in file:
                if line.startswith("## "):
                    space = line[3:].strip()
                row = re.match(r"\| (\w+) \| `(tern_\w+)` \|", line)
                if row and space:
                    self.torch.setdefault(row.group(2), []).append(space + "." + row.group(1))


def arguments(item):
    """[(C type, name)] of a prototype."""
    match = re.search(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\);$", item.code)
    inside = match.group(1) if match else ""
    if inside.strip() in ("void", ""):
        return []
    out, depth, part = [], 0, ""
    for c in inside + ",":
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            part = part.strip()
            called = re.match(r"(.*)\(\*(\w+)\)(\(.*\))$", part)
            plain = re.match(r"(.*?[ *])(\w+)(\[[^]]*\])?$", part)
            if called:
                out.append((called.group(1) + "(*)" + called.group(3), called.group(2)))
            elif part == "...":
                out.append(("...", "..."))
            elif plain:
                out.append(((plain.group(1).strip() + (plain.group(3) or "")), plain.group(2)))
            part = ""
        else:
            part += c
    return out


def said_of(name, texts):
    """Where the text says of an argument what it is: "x: (N, C)", "x (..., M, K)"."""
    for text in texts:
        prose = " ".join(text.split())
        match = re.search(r"(?<![\w.])" + re.escape(name) + r"(?: is)?:? (\((?:[^()]|\([^()]*\))*\))", prose) \
            or re.search(r"(?<![\w.])" + re.escape(name) + r": ([^.;]+)", prose)
        if match and len(match.group(1)) < 160:
            return match.group(1).strip(" ,")
    return ""


def result_type(item):
    return re.match(r"(.*?)\btern_[a-z0-9_]+\(", item.code).group(1).strip()


def result(item, tables):
    """What comes back, and who owns it."""
    kind, name, text = result_type(item), item.names[0], item.text + " " + item.lead
    handle = re.match(r"(const )?(tern_\w+) \*$", kind)
    returns = re.search(r"[Rr]eturns? (it|x|m|self|child|wrapper|model|the child|the head|its first argument)(?=[.,;]| and\b|$)", text)
    maybe = re.search(r"\bx itself,?( borrowed,)? (if|when)\b", text)
    if kind == "tern_status":
        return "`TERN_OK`, or the error, which is recorded too"
    if kind == "void":
        return "nothing"
    if kind == "const char *":
        return "a text that the caller does not free"
    if kind == "char *":
        return "a new text, which the caller frees with tern_free_text; NULL after an error"
    if kind == "tern_tensor *":
        first = (arguments(item) or [("", "")])[0]
        if maybe:
            return f"`{first[1]}` itself, borrowed, or a new tensor, owned by the innermost scope; NULL after an error"
        if "borrowed" in text:
            return "a borrowed tensor; NULL where there is none"
        if returns or name.endswith("_") and first[0] == "tern_tensor *":
            named = returns.group(1) if returns and not name.endswith("_") else "it"
            return f"`{first[1] if named in ('it', 'its first argument') else named}` itself; NULL after an error"
        return "a new tensor, owned by the innermost scope; NULL after an error"
    if handle and handle.group(2) == "tern_module":
        made = re.match(r"tern_(nn|dist|models|peft|lora)", name) and not returns and \
            not re.search(r"_(child|child_at|add|set_child|wrap|unwrap|to|to_dtype|train|eval|requires_grad_)$", name)
        return "a new module, which the caller frees with tern_nn_free or gives to a parent; NULL after an error" if made else \
            "a module, which the caller frees only if it was taken out of its parent or copied; NULL after an error"
    if handle and handle.group(2) in tables.free and not handle.group(1):
        return f"a handle, which the caller frees with {tables.free[handle.group(2)]}; NULL after an error"
    return f"`{kind}`"


def errors(item, section, page):
    """The sentences about errors: its own, else those of its section or page."""
    if item.names[0].endswith("_defaults"):
        return "none"
    for text in (item.text, item.lead, section.text, page.intro):
        found = [s for s in sentences(text) if "TERN_ERR_" in s]
        if found:
            return " ".join(found)
    kind = result_type(item)
    if kind.startswith("const char") and not re.search(r"\*", item.code[item.code.index("("):]):
        return "none"
    takes = [t for t, _ in arguments(item) if t.endswith("*")]
    if kind == "void" or not takes and not kind.endswith("*") and kind != "tern_status":
        return "none"
    if kind == "tern_status":
        return "the status; TERN_ERR_ARGUMENT for NULL where a value is required"
    if kind.endswith("*"):
        return "NULL, and the error is recorded; NULL for a NULL argument records no second error"
    return "tern_last_status returns the error; the description names the value that is returned then"


def types(item, section, tables):
    """Element types: of the row, else what the text says of them."""
    known = tables.types.get(item.names[0], "")
    about = re.compile(r"\b(float(32|64|16)?|floating point|bfloat16|int(64|32|8|egers?)|uint8|bools?|dtypes?|reals|halves)\b")
    for text in (item.text, item.lead):
        known = known or " ".join(s for s in sentences(text) if about.search(s) and "TERN_ERR" not in s)
    return known or " ".join(s for s in sentences(section.text) if about.search(s) and "TERN_ERR" not in s)[:300]


def waits(item):
    """What the text says of waiting for the device."""
    return " ".join(s for s in sentences(item.text) if re.search(r"\b[Ww]aits?\b|does not wait|blocks until", s))


def threads(item, section, page):
    """What the text says of threads; else what follows of the arguments (docs/guide/embedding.md)."""
    about = re.compile(r"\bthreads?\b|\bTHREADS\b")
    for text in (item.text, item.lead):
        said = [s for s in sentences(text) if about.search(s)]
        if said:
            return " ".join(said)
    said = [s for text in (section.text, page.intro) for s in sentences(text) if re.search(r"one thread|threads may", s)]
    changed = sorted({m.group(1) for t, _ in arguments(item) if (m := re.match(r"(tern_\w+) \*$", t))})
    if said:
        return " ".join(said)
    return "any; calls that change the same " + " or ".join(changed) + " must not overlap" if changed else "any"


def options(item, tables):
    """The options struct that it takes: its fields are its keyword arguments."""
    for kind, _ in arguments(item):
        match = re.match(r"const (tern_\w+_options) \*", kind)
        if match and match.group(1) in tables.structs:
            return match.group(1)
    return ""


def pytorch(item, tables):
    name = item.names[0]
    said = re.findall(r"\btorch(?:vision|metrics|audio)?\.[A-Za-z_][\w.]*\w", item.text)
    base = re.sub(r"(_scalar)?_?$", "", name)
    row = name in tables.types  # whose names are those of the row
    signed = [] if row else tables.signatures.get(name, [])
    plain = tables.torch.get(name, []) or ([] if signed else tables.torch.get(base, []))
    known = {s.split("(")[0] for s in signed}
    return list(dict.fromkeys(signed + [n for n in said + plain if n not in known]))


def slots(item, section, page, tables):
    texts = [item.text, item.lead, section.text]
    args = [{"name": n, "type": t, "text": said_of(n, texts) or meaning(n, t, page.path)} for t, n in arguments(item)]
    return {"arguments": args, "result": result(item, tables), "types": types(item, section, tables),
            "autocast": tables.cast.get(item.names[0], ""), "errors": errors(item, section, page),
            "waits": waits(item), "threads": threads(item, section, page),
            "since": tables.since.get(item.names[0], FIRST), "options": options(item, tables), "pytorch": pytorch(item, tables)}
