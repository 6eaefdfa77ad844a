"""markdown.py -- a page of Markdown for each header, and the pages that lead to them."""
import re

from headers import CODE, families, sentences

ESCAPED = re.compile(r"([\\`*_\[\]<>|#$~])")


class Links:
    """Where a name is explained: page and anchor."""

    def __init__(self, pages):
        self.where = {}
        for items in [items for page in pages for section in page.sections for items in families(section)]:
            head = items[0].names[0]
            for item in items:
                self.where[item.names[0]] = head + ".md" + ("" if item is items[0] else "#" + anchor(item.names[0]))
        for kind in ("type", "macro"):
            for page in pages:
                for run in [run for section in page.sections for run in runs(section.items())]:
                    for name in [name for item in run for name in item.names if item.kind == kind]:
                        self.where.setdefault(name, page.slug + ".md#" + anchor(run[0].names[0]))

    def to(self, name, folder=""):
        return f"[`{name}`]({folder}{self.where[name]})" if name in self.where else f"`{name}`"


def anchor(name):
    """As Sphinx and GitHub make one of a heading."""
    return name.lower()


def capital(text):
    """The text as a heading: it begins with a capital, unless with a name."""
    return text if CODE.match(text) or not text[:2].isalpha() else text[0].upper() + text[1:]


def plain(text):
    """Text in which nothing means something to Markdown."""
    return ESCAPED.sub(r"\\\1", text)


def inline(text, links, folder=""):
    """Prose with its names as links and everything else taken literally."""
    out, at = [], 0
    for match in CODE.finditer(text):
        out.append(plain(text[at:match.start()]))
        out.append(links.to(match.group(0), folder))
        at = match.end()
    out.append(plain(text[at:]))
    return "".join(out)


def blocks(text):
    """[(is code, text)]: lines that are indented by two or more are code, with the empty lines among them."""
    out = []
    for line in text.split("\n"):
        code = line.startswith("  ") or (not line.strip() and out and out[-1][0] == "code")
        kind = "code" if code else ("gap" if not line.strip() else "item" if line.startswith("- ") else "prose")
        if out and out[-1][0] == kind and kind != "item":
            out[-1][1].append(line)
        elif out and out[-1][0] == "item" and kind == "prose":
            out[-1][1].append(line)
        elif kind == "code" and out and out[-1][0] == "item":
            out[-1][1].append(line.strip())
        else:
            out.append((kind, [line]))
    return [(kind, lines) for kind, lines in out if kind != "gap"]


def body(text, links):
    out = []
    for kind, lines in blocks(text):
        if kind == "code":
            shortest = min((len(l) - len(l.lstrip()) for l in lines if l.strip()), default=0)
            out += ["```text"] + [l[shortest:] for l in "\n".join(lines).rstrip().split("\n")] + ["```", ""]
        elif kind == "item":
            out += ["- " + inline(" ".join(l.strip() for l in lines)[2:], links), ""]
        else:
            out += [inline(line, links) for line in lines] + [""]
    return out


def wrapped(code):
    """A prototype in lines of up to 96 columns, its arguments under each other."""
    if len(code) <= 96 or "(" not in code:
        return code
    head, _, rest = code.partition("(")
    lines, indent = [head + "("], " " * (len(head) + 1 if len(head) < 50 else 4)
    for i, part in enumerate(rest.split(", ")):
        piece = part if i == len(rest.split(", ")) - 1 else part + ", "
        if len(lines[-1]) + len(piece) > 97 and lines[-1].strip():
            lines.append(indent)
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def index(names):
    """Entries of the index, which the site's search finds before what only has the words somewhere: of torch.nn.functional.cross_entropy
    that name, cross_entropy, and cross entropy."""
    names = [name.split("(")[0] for name in names]
    short = [name.split(".")[-1] for name in names]
    entries = dict.fromkeys(names + short + [name.replace("_", " ").strip() for name in short])
    return ["```{index} " + ", ".join(entries), "```", ""] if names else []


def facts(item, slots, links):
    """What is known of a function beside its text: arguments, result, types, errors, as the lines of a list."""
    out = []
    rows = [f"`{a['name']}`: {inline(a['text'], links)}" for a in slots["arguments"] if a["text"]]
    if rows:
        out += ["- **Arguments**"] + ["  - " + row for row in rows]
    if slots["options"]:
        out += [f"- **Options**: {links.to(slots['options'])}; NULL for the defaults"]
    out += ["- **Result**: " + (slots["result"] if "`" in slots["result"] else inline(slots["result"], links))]
    if slots["types"]:
        out += ["- **Types**: " + inline(slots["types"], links)]
    if slots["autocast"]:
        out += ["- **Under autocast**: " + slots["autocast"]]
    out += ["- **Errors**: " + inline(slots["errors"], links)]
    if slots["waits"]:
        out += ["- **Waits**: " + inline(slots["waits"], links)]
    out += ["- **Threads**: " + inline(slots["threads"], links), "- **Since**: " + slots["since"]]
    if slots["pytorch"]:
        out += ["- **PyTorch**: " + ", ".join(f"`{n}`" for n in slots["pytorch"])]
    return out


def neighbours(items, section, most=8):
    """The functions that stand around a family in its section, for "see also"."""
    heads = [family[0].names[0] for family in families(section)]
    at = heads.index(items[0].names[0])
    return heads[max(0, at - most // 2):at] + heads[at + 1:at + 1 + most // 2]


def function_page(items, page, section, described, links, tables):
    """The page of a function and its forms: what is the same for a form as for the first is not repeated."""
    head = items[0]
    out = ["---", "orphan: true", "---", "", f"# {head.names[0]}", ""]
    out += index([n for i in items for n in described[i.names[0]]["pytorch"]])
    out += [f"`#include <{page.path}>` -- [{plain(capital(page.title.rstrip('.')))}]({page.slug}.md)", ""]
    before = set()
    for item in items:
        slots = described[item.names[0]]
        if item is not head:
            out += [f"## {item.names[0]}", ""]
        out += ["```c", wrapped(item.code), "```", ""]
        if item.summary:
            out += [inline(item.summary, links), ""]
        if item.lead and item is head:
            out += body(item.lead, links)
        out += body(item.text, links)
        known = facts(item, slots, links)
        out += [line for line in known if line not in before or line.startswith("- **Arguments")] + [""]
        before.update(known)
    if described[head.names[0]]["options"]:
        out += ["## Options", "", "```c"] + tables.structs[described[head.names[0]]["options"]].split("\n") + ["```", ""]
    for item in items:
        if item.names[0] in tables.examples:
            path, title, lines = tables.examples[item.names[0]]
            out += ["## Example", "", f"From [{title}](../{path}):", "", "```c"] + excerpt(lines, item.names[0]) + ["```", ""]
            break
    near = neighbours(items, section)
    if near:
        out += ["## See also", "", ", ".join(links.to(name) for name in near), ""]
    return "\n".join(out).rstrip() + "\n"


def first_sentence(item):
    """How the text of a function begins."""
    text = sentences((item.summary or item.lead or item.text).split("\n\n")[0])
    return text[0] if text else ""


def excerpt(lines, name, most=14):
    """The lines of a snippet around the call of a function."""
    if len(lines) <= most:
        return lines
    at = next(i for i, line in enumerate(lines) if name + "(" in line)
    first = max(0, min(at - most // 2, len(lines) - most))
    return lines[first:first + most]


def declaration(item, links):
    title = item.names[0] if item.names else item.code.split("{")[0].strip()
    code = item.code if item.kind == "type" else item.code
    return [f"### {title}", ""] + body(item.text, links) + ["```c", code, "```", ""]


def runs(items):
    """Functions one by one, macros that follow each other under one comment together."""
    out = []
    for item in items:
        if out and item.kind == "macro" and out[-1][0].kind == "macro" and out[-1][0].text == item.text:
            out[-1].append(item)
        else:
            out.append([item])
    return out


def header_page(page, described, links, tables):
    """described: slots of each function by name."""
    out = [f"# {page.path}", "", inline(capital(page.title), links), "", f"`#include <{page.path}>`", ""]
    out += body(page.text, links)
    for section in page.sections:
        if section.title:
            out += [f"## {inline(capital(section.title), links)}", ""]
            out += body(section.text, links)
        elif section.items():
            out += ["## Declarations", ""]
        heads, table = {items[0].names[0]: items for items in families(section)}, False
        for run in runs(section.items()):
            first = run[0]
            if first.kind == "function":
                if first.names[0] in heads:
                    out += [] if table else ["| function | PyTorch | what it does |", "|---|---|---|"]
                    out.append(function_row(heads[first.names[0]], described, links))
                    table = True
                continue
            out += [""] if table else []
            table = False
            if first.kind == "macro" and len(run) > 1:
                out += declaration(first, links)[:-3] + [item.code for item in run] + ["```", ""]
            else:
                out += declaration(first, links)
        out += [""] if table else []
    return "\n".join(out).rstrip() + "\n"


def function_row(items, described, links):
    head = items[0]
    torch = [n.split("(")[0] for n in described[head.names[0]]["pytorch"]]
    forms = f" ({len(items)} forms)" if len(items) > 1 else ""
    return f"| {links.to(head.names[0])}{forms} | {'`' + torch[0] + '`' if torch else ''} | {inline(first_sentence(head), links)} |"


def contents(pages):
    """The page that lists the headers, and each one's functions."""
    out = ["# Reference", "", "Each header is the reference of its theme; `tern/tern.h` includes all but those that say otherwise.",
           "`man 3 tern_matmul` shows the same of one function, `man 7 tern_tensor` of one header.", "",
           "| header | what is in it | functions |", "|---|---|---|"]
    for page in pages:
        out.append(f"| [{page.path}]({page.slug}.md) | {plain(page.title)} | {len(page.functions())} |")
    out += ["", "```{toctree}", ":hidden:", ":maxdepth: 1", ""] + [page.slug for page in pages] + ["functions", "cpp", "```", ""]
    return "\n".join(out)


def by_name(pages, described, links):
    """All functions in alphabetical order, with PyTorch's name and how their text begins."""
    out = ["# Functions by name", "", "| function | PyTorch | |", "|---|---|---|"]
    for item in sorted((i for page in pages for i in page.functions()), key=lambda i: i.names[0]):
        torch = [n.split("(")[0] for n in described[item.names[0]]["pytorch"]]
        text = " ".join((item.summary or item.lead or item.text).split("\n\n")[0].split())
        short = text if len(text) < 90 else text[:90].rsplit(" ", 1)[0] + " ..."
        out.append(f"| {links.to(item.names[0])} | {'`' + torch[0] + '`' if torch else ''} | {plain(short)} |")
    return "\n".join(out) + "\n"


def cpp_page(text):
    """tern/tern.hpp as it is written: a heading for each of its rulers, its code between them."""
    lines = text.split("\n")
    intro = [l[2:].strip() for l in lines[:lines.index(next(l for l in lines if not l.startswith("//")))]]
    out = ["# tern/tern.hpp", "", intro[0].partition(" -- ")[2], ""]
    for i, line in enumerate(lines[len(intro):]):
        title = re.match(r"\s*// ---- (.*?) -+$", line)
        if title:
            while out and not out[-1].strip():
                out.pop()
            out += (["```"] if "```cpp" in out else []) + ["", "## " + title.group(1), "", "```cpp"]
        elif "```cpp" in out:
            out.append(line)
    return "\n".join(out).rstrip() + "\n```\n"
