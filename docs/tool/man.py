"""man.py -- manual pages: one in section 3 for each function and its forms, links (.so) for the forms and for types and
macros, one in section 7 for each header."""
import re

from headers import families
from markdown import blocks, excerpt, neighbours, wrapped


def roff(text):
    """A line of text that roff takes as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha") \
        .replace("~", "\\(ti")
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def fill(lines):
    """Prose: sentences begin on lines of their own."""
    prose = " ".join(" ".join(lines).split())
    return [roff(s) for s in re.split(r"(?<=[a-z0-9)\"]\.) (?=[A-Z\"(])", prose) if s]


def example(lines):
    shortest = min((len(l) - len(l.lstrip()) for l in lines if l.strip()), default=0)
    return [".nf"] + [roff(l[shortest:].rstrip()) or "\\&" for l in lines] + [".fi"]


def body(text, first=False):
    out = []
    for kind, lines in blocks(text):
        if not first or out:
            out.append(".PP")
        if kind == "code":
            while lines and not lines[-1].strip():
                lines.pop()
            out += example(lines)
        elif kind == "item":
            out[-1:] = [".IP \\(bu 2"] if out and out[-1] == ".PP" else out[-1:] + [".IP \\(bu 2"]
            out += fill([lines[0][2:]] + lines[1:])
        else:
            out += fill(lines)
    return out


def title(name, section, date):
    return [f'.TH {name.upper()} {section} "{date}" tern "tern"']


def joined(out):
    """The page as text, without breaks of paragraphs where one begins anyway."""
    kept = []
    for i, line in enumerate(out):
        after = out[i + 1] if i + 1 < len(out) else ".SH"
        if line == ".PP" and (kept[-1].startswith((".SH", ".PP")) or after.startswith((".SH", ".PP", ".TP", ".IP"))):
            continue
        kept.append(line)
    return "\n".join(kept) + "\n"


def summary_of(item, described):
    """What stands behind the name: PyTorch's name for it, and how the text begins."""
    torch = [n.split("(")[0] for n in described[item.names[0]]["pytorch"]]
    text = " ".join((item.summary or item.lead or item.text).split("\n\n")[0].split())
    text = text if len(text) <= 70 else text[:70].rsplit(" ", 1)[0]
    return roff((torch[0] + ": " if torch else "") + text.rstrip(".,:;(")).replace("\\&", "")


def slot(heading, lines):
    return [f".SH {heading}"] + lines if lines else []


def argument_list(described):
    """What is known of the arguments of a function and its forms, each name once."""
    out, seen = [], set()
    for argument in [a for slots in described for a in slots["arguments"]]:
        if argument["text"] and argument["name"] not in seen:
            seen.add(argument["name"])
            out += [".TP", f".I {argument['name']}"] + fill([argument["text"]])
    return out


def function_page(items, page, section, described, tables, date):
    """items[0] and its forms."""
    head = items[0]
    slots = described[head.names[0]]
    out = title(head.names[0], 3, date)
    out += [".SH NAME", ", ".join(i.names[0] for i in items) + " \\- " + summary_of(head, described)]
    out += [".SH SYNOPSIS", ".nf", f"#include <{page.path}>", ""]
    for item in items:
        out += [roff(line) for line in wrapped(item.code).split("\n")]
    out += [".fi", ".SH DESCRIPTION"]
    if len(items) == 1 and not head.lead:
        out += (fill([head.summary]) + [".PP"] if head.summary else []) + body(head.text, first=True)
    else:
        out += fill([head.summary]) if head.summary else []
        for item in items:
            text = (item.lead + " " if item is head and item.lead else "") + item.text
            out += [".TP", f".B {item.names[0]}"] + [l for l in body(text, first=True) if l != ".PP"]
    out += slot("ARGUMENTS", argument_list([described[i.names[0]] for i in items]))
    if slots["options"]:
        out += slot("OPTIONS", example(tables.structs[slots["options"]].split("\n")))
    out += slot("RETURN VALUE", fill([slots["result"].replace("`", "") + "."]))
    types = [f"{what}: {slots[key].rstrip('.')}." for key, what in (("types", "Takes"), ("autocast", "Under autocast")) if slots[key]]
    out += slot("TYPES", fill(types))
    out += slot("ERRORS", fill([slots["errors"].rstrip(".") + "."]))
    out += slot("WAITING", fill([slots["waits"]]) if slots["waits"] else [])
    out += slot("THREADS", fill([slots["threads"].replace("`", "").rstrip(".") + "."]))
    out += slot("HISTORY", fill([f"Since {slots['since']}."]))
    names = [n for i in items for n in described[i.names[0]]["pytorch"]]
    if names:
        out += [".SH PYTORCH", ".nf"] + [roff(n) for n in dict.fromkeys(names)] + [".fi"]
    shown = [i.names[0] for i in items if i.names[0] in tables.examples][:1]
    if shown:
        out += [".SH EXAMPLES"] + example(excerpt(tables.examples[shown[0]][2], shown[0]))
    near = [f".BR {name} (3)," for name in neighbours(items, section, 6)]
    out += [".SH SEE ALSO"] + near + [f".BR tern_{page.slug} (7)"]
    return joined(out)


def header_page(page, date):
    out = title("tern_" + page.slug, 7, date)
    out += [".SH NAME", f"tern_{page.slug} \\- " + roff(page.title[:90]).rstrip(".:")]
    out += [".SH SYNOPSIS", f"#include <{page.path}>"]
    if page.text.strip():
        out += [".SH DESCRIPTION"] + body(page.text, first=True)
    for number, section in enumerate(page.sections):
        if not section.items():
            continue
        words = section.title.upper() if section.title else "DECLARATIONS"
        out += [".SH " + roff(words)] + body(section.text, first=True)
        seen = None
        for item in section.items():
            if item.kind == "function":
                continue
            if item.text and item.text != seen and item.text != section.text:
                out += body(item.text)
            seen = item.text
            out += [".PP"] + example(item.code.split("\n"))
        functions = [i for i in section.items() if i.kind == "function"]
        for item in functions:
            out += [".TP", f".BR {item.names[0]} (3)"] + fill([item.text.split("\n\n")[0]])[:1]
    return joined(out)


def pages(all_pages, described, tables, date):
    """{file: text} of all manual pages."""
    out = {}
    for page in all_pages:
        out[f"man7/tern_{page.slug}.7"] = header_page(page, date)
        for section in page.sections:
            for items in families(section):
                name = items[0].names[0]
                out[f"man3/{name}.3"] = function_page(items, page, section, described, tables, date)
                for item in items[1:]:
                    out[f"man3/{item.names[0]}.3"] = f".so man3/{name}.3\n"
        for item in page.items():
            for name in item.names if item.kind != "function" else []:
                if re.match(r"tern_|TERN_", name):
                    out.setdefault(f"man3/{name}.3", f".so man7/tern_{page.slug}.7\n")
    return out
