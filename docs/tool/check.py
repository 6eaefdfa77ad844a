"""check.py -- holds the documents to the code: each function has text, links and paths lead somewhere, names exist.

A name in a document is one that the sources know; tern_x, tern_nn_* and the like are patterns and not looked for.
CHANGELOG.md tells of what was, so its names are not held to what is."""
import os
import re

import documents
import environment
import headers
import man
import markdown
import slots

SOURCES = ("include", "src", "cmake", "ci", "tests", "examples", "bench", "cl_kernels", "docs/tool", "debian", "python")
FOLDERS = SOURCES + ("docs",)
TEXTS = (".c", ".h", ".cpp", ".hpp", ".def", ".txt", ".cmake", ".in", ".py", ".awk", ".sh", ".cl", ".map", ".txt", "")
HISTORY = ("CHANGELOG.md", "docs/adding.md")  # what was, and what was tried and taken out again
NAME = re.compile(r"\b(?:tern|TERN)_[A-Za-z0-9_]*\w")
PATTERN = re.compile(r"_x\b|_x_|<|_$|_\.\.\.|\btern_(name|layer|loss)\b")
LINK = re.compile(r"(?<!\\)!?\[[^\]]*\]\(([^)\s]+)\)")


def known_names(root):
    """Every word tern_... or TERN_... of the sources, and what the headers' macros make."""
    known = set()
    for folder in SOURCES:
        for path, _, files in os.walk(os.path.join(root, folder)):
            if "third_party" in path or "corpus" in path or "golden" in path or "build" in path.split(os.sep):
                continue
            for name in files:
                if os.path.splitext(name)[1] in TEXTS:
                    with open(os.path.join(path, name), encoding="utf-8", errors="replace") as file:
                        known.update(NAME.findall(file.read()))
    with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as file:
        known.update(NAME.findall(file.read()))
    with open(os.path.join(root, "src", "base", "env.def"), encoding="utf-8") as file: # variables of the environment
        known.update("TERN_" + name for name in re.findall(r"^VARIABLE\((\w+),", file.read(), re.M))
    return known


def texts(pages):
    return [f"{page.path}: {name}: without text" for page in pages for item in page.functions()
            for name in item.names if len(item.text) < 2]


def sentences(root, pages):
    """The first function of each page says what it does: by the header's comment, else by a line of docs/tool/summaries.txt."""
    heads = [items[0] for page in pages for section in page.sections for items in headers.families(section)]
    known = {item.names[0] for page in pages for item in page.functions()}
    out = [f"{h.names[0]}: {h.text!r} does not say what it does: it needs a line in docs/tool/summaries.txt" for h in heads
           if headers.few_words(h) and not h.summary]
    out += [f"{h.names[0]}: its text sends the reader elsewhere: {h.text!r}" for h in heads
            if re.match(r"(?i)see (also )?(the |[\w./]+\.h)", h.text)]
    return out + [f"docs/tool/summaries.txt: nothing is called {name}" for name in headers.summaries(root) if name not in known]


def examples(root, tables, functions):
    """Each function of the cheatsheet, which lists those that programs use most, has an example that a test runs."""
    listed = dict.fromkeys(NAME.findall(documents.read(root, "docs/guide/cheatsheet.md")))
    return [f"docs/guide/cheatsheet.md: {name} has no example in the guides (docs/guide/by-example.md)" for name in listed
            if name in functions and name not in tables.examples]


def answers(text):
    """The index by PyTorch's names: each row has tern's name, or says why there is none or what to do instead."""
    out = []
    for number, line in enumerate(text.split("\n"), 1):
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and cells[0] and not re.match(r"-+$", cells[0]) and not (cells[1] or cells[2]):
            out.append(f"docs/coverage.md:{number}: {cells[0]} has no answer")
    return out


def versions(known, functions):
    """docs/since.txt names functions that are there, and versions."""
    return [f"docs/since.txt: {name} is no function" for name in known if name not in functions] + \
        [f"docs/since.txt: {known[name]} of {name} is no version" for name in known if not re.match(r"\d+\.\d+\.\d+$", known[name])]


def manuals(pages, described, tables):
    """Each function has a manual page of its own or a link to one that is there."""
    made = man.pages(pages, described, tables, "2026-01-01")
    out = [f"no manual page of {n}" for n in described if f"man3/{n}.3" not in made]
    for path, text in made.items():
        target = text[4:].strip() if text.startswith(".so ") else None
        if target and (target not in made or made[target].startswith(".so ")):
            out.append(f"{path}: its .so leads to {target}")
    return out


def links(root, path, text, anchors):
    out = []
    for number, line in documents.prose(text):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if there.startswith("docs/reference/") or there.startswith("reference/"):
                continue  # made by the build
            if not os.path.exists(os.path.join(root, there)):
                out.append(f"{path}:{number}: there is no {there}")
            elif anchor and there.endswith(".md") and anchor not in anchors(there):
                out.append(f"{path}:{number}: {there} has no #{anchor}")
    return out


def paths(root, path, text):
    """`src/tensor/apply.c` and its like in the documents."""
    out = []
    for number, line in documents.prose(text):
        for target in re.findall(r"`((?:" + "|".join(FOLDERS) + r")/[\w./-]+)`", line):
            if not os.path.exists(os.path.join(root, target)) and not re.search(r"/name\.|/x\.", target) \
                    and not os.path.exists(os.path.join(root, target + ".c")):
                out.append(f"{path}:{number}: there is no {target}")
    return out


def names(path, text, known):
    out, printed = [], {}  # what programs print, a small GPT among them, is no claim of the document
    for block in documents.blocks(text):
        if block.language in ("", "text", "output"):
            printed.update((block.number + i, True) for i in range(len(block.lines)))
    for number, line in enumerate(text.split("\n"), 1):
        for match in NAME.finditer(line) if number not in printed else ():
            name, after = match.group(0), line[match.end():match.end() + 1]
            if name in known or PATTERN.search(name) or after in ("*", "<"):
                continue
            out.append(f"{path}:{number}: nothing is called {name}")
    return out


def first_page(text, results):
    """README.md is short, begins with the two commands, and its table has numbers of the results that it links to and no others."""
    lines = text.split("\n")
    out = [f"README.md: {len(lines) - 1} lines, where 150 are the most"] if len(lines) > 151 else []
    out += [f"README.md: {c} is not on the first screen" for c in ("./ci/demo", "./ci/test") if c not in "\n".join(lines[:25])]
    linked = "\n".join(results[p] for p in LINK.findall(text) if p in results)
    for number, line in enumerate(lines, 1):
        for cell in re.split(r"\|", line)[2:-1]:
            if re.fullmatch(r" \d+\.\d+ ", cell) and not re.search(rf"(?<![\d.]){re.escape(cell.strip())}(?![\d.])", linked):
                out.append(f"README.md:{number}: {cell.strip()} is in none of the results that it links to")
    return out


def run(root):
    pages = headers.read_all(root)
    tables = slots.Tables(root, pages)
    described = {i.names[0]: slots.slots(i, s, p, tables) for p in pages for s in p.sections for i in s.items()
                 if i.kind == "function"}
    found = texts(pages) + sentences(root, pages) + manuals(pages, described, tables) + answers(documents.read(root, "docs/coverage.md"))
    found += versions(tables.since, described) + environment.check(root) + examples(root, tables, described)
    known, cache, every_link = known_names(root), {}, markdown.Links(pages)

    def anchors(path):
        if path not in cache:
            cache[path] = documents.anchors(documents.read(root, path))
        return cache[path]

    results = {p: documents.read(root, p) for p in (f"bench/results/{n}" for n in os.listdir(os.path.join(root, "bench/results")))}
    found += first_page(documents.read(root, "README.md"), results)
    every = documents.documents(root)
    for path in every:
        text = documents.read(root, path)
        found += links(root, path, text, anchors)
        if path not in HISTORY:
            found += paths(root, path, text) + names(path, text, known)
    generated = {page.slug + ".md" for page in pages} | {i[0].names[0] + ".md" for p in pages for s in p.sections for i in headers.families(s)}
    for page in pages:
        text = markdown.header_page(page, described, every_link, tables)
        for target in LINK.findall("\n".join(l for _, l in documents.prose(text))):
            if not target.startswith("../") and ":" not in target and target.partition("#")[0] not in generated:
                found.append(f"{page.path}: a link to {target}")
    print("\n".join("docs: " + line for line in found) or
          f"docs: {len(described)} functions, {len(every)} documents, {len(known)} names: ok")
    return 1 if found else 0
