"""site_source.py -- what Sphinx reads: the documents with names of tern's as links to the reference, and their order."""
import json
import os
import re
import shutil

import documents
import headers
import markdown

GUIDES = ("install", "first-steps", "rules", "devices", "autograd", "modules", "data", "which-file", "saving", "mixed-precision",
          "recorded-steps", "parallel", "fine-tuning", "kernels", "matrix-units", "embedding", "cpp", "from-pytorch",
          "pytorch-on-your-gpu", "idioms", "by-example", "from-cuda", "troubleshooting", "drivers", "examples", "cheatsheet")
SPAN = re.compile(r"(?<!\[)`(tern_[a-z0-9_]+|TERN_[A-Z0-9_]+)(\([^`]*\))?`(?!\])")


def linked(text, links, up):
    """Names in backquotes lead to where they are explained; fenced blocks are left alone. A line <!-- index: a, b --> makes entries."""
    out, fence = [], None
    for line in text.split("\n"):
        entries = re.fullmatch(r"<!-- index: (.*) -->", line)
        if entries and fence is None:
            out += ["```{index} " + entries.group(1), "```"]
            continue
        match = documents.FENCE.match(line)
        if match and fence is None:
            fence = match.group(2)
            words = match.group(3).split()
            line = match.group(1) + fence + (words[0] if words and words[0] not in ("output",) else "text" if words else "text")
        elif match and match.group(2).startswith(fence):
            fence = None
        elif fence is None and not line.startswith("#"):
            line = SPAN.sub(lambda m: f"[`{m.group(1)}{m.group(2) or ''}`]({up}reference/{links.where[m.group(1)]})"
                            if m.group(1) in links.where else m.group(0), line)
        out.append(line)
    return "\n".join(out)


def within(text, path, pages):
    """Links to files of the repository that the site does not have become their text and the file's name."""
    def answer(match):
        file = match.group(2).partition("#")[0]
        there = os.path.normpath(os.path.join(os.path.dirname(path), file))
        if not file or re.match(r"[a-z]+:", file) or there in pages or "reference/" in there or file.endswith((".svg", ".png")):
            return match.group(0)
        return match.group(1) if match.group(1).strip("`") == there else f"{match.group(1)} (`{there}`)"
    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", answer, text)


def section_of(text, title):
    """The lines of a section of a document, its heading first."""
    lines = text.split("\n")
    first = lines.index("## " + title)
    last = next((i for i in range(first + 1, len(lines)) if lines[i].startswith("## ")), len(lines))
    return lines[first:last]


def at_the_top(text, path):
    """The links of a document as one in the topmost folder has them."""
    return re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)",
                  lambda m: f"]({os.path.normpath(os.path.join(os.path.dirname(path), m.group(1)))})", text)


def first_page(home, readme):
    """docs/home.md with the sections of README.md that its lines <!-- readme: TITLE --> name, and with tabs between <!-- tabs: A, B -->,
    <!-- tab --> and <!-- tabs end -->; what stands in a tab has no heading."""
    out, within_tabs = [], False
    for line in home.split("\n"):
        mark = re.fullmatch(r"<!-- (readme|tabs|tab)(?::? (.*?))? ?-->", line)
        if not mark:
            out.append(line)
        elif mark.group(1) == "readme":
            out += section_of(readme, mark.group(2))[1 if within_tabs else 0:]
        elif mark.group(1) == "tab":
            out += ["</div>", '<div class="tern-tab">', ""]
        elif mark.group(2) == "end":
            out += ["</div>", "</div>", ""]
            within_tabs = False
        else:
            within_tabs = True
            out += ['<div class="tern-tabs">']
            for i, name in enumerate(mark.group(2).split(", ")):
                out.append(f'<input type="radio" name="tabs" id="tab-{i}"{"" if i else " checked"}>'
                           f'<label for="tab-{i}">{name}</label>')
            out += ['<div class="tern-tab">', ""]
    return "\n".join(out)


def texts(site):
    """The text of every page, for excerpts.js: what a reader sees, without marks."""
    found = {}
    for folder, _, files in os.walk(site):
        for name in sorted(f for f in files if f.endswith(".md")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = re.sub(r"\A---\n.*?\n---\n", "", file.read(), flags=re.S)
            text = re.sub(r"^(```|~~~|#)[^\n]*$|<!--.*?-->|^\|[-|]+\|$|</?[a-z][^>]*>", " ", text, flags=re.M | re.S)
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("**", "").replace("\\", "").replace("|", " ")
            page = os.path.relpath(os.path.join(folder, name), site)[:-len(".md")]
            found[page] = " ".join(text.split())[:20000]
    return "window.TERN_TEXTS = " + json.dumps(found, sort_keys=True) + ";\n"


def toctree(title, entries):
    return ["```{toctree}", f":caption: {title}", ":maxdepth: 1", ""] + entries + ["```", ""]


def write_site(root, out):
    """OUT/site/: README.md is the first page, docs/ lies below it as in the repository."""
    from __main__ import write
    site = os.path.join(out, "site")
    links = markdown.Links(headers.read_all(root))
    pages = [p for p in documents.documents(root) if not p.startswith(("bench/", "debian/"))]
    pages += [p for p in re.findall(r"\]\((bench/results/[^)]+)\)", documents.read(root, "README.md"))]
    pages.remove("docs/home.md")
    for path in pages:
        up = "../" * path.count("/")
        orphan = "" if path.startswith("docs/") else "---\norphan: true\n---\n\n"
        write(os.path.join(site, path), orphan + within(linked(documents.read(root, path), links, up), path, pages))
    for folder, kinds in (("docs", (".svg",)), ("docs/guide", (".svg",)), ("docs/pictures", (".svg", ".png"))):
        if os.path.isdir(os.path.join(root, folder)):
            for name in os.listdir(os.path.join(root, folder)):
                if name.endswith(kinds):
                    os.makedirs(os.path.join(site, folder), exist_ok=True)
                    shutil.copyfile(os.path.join(root, folder, name), os.path.join(site, folder, name))
    shutil.copytree(os.path.join(out, "reference"), os.path.join(site, "reference"), dirs_exist_ok=True)
    guides = [f"docs/guide/{g}.md" for g in GUIDES if os.path.exists(os.path.join(root, f"docs/guide/{g}.md"))]
    rest = [p for p in documents.documents(root) if re.match(r"docs/\w+\.md$", p) and p not in ("docs/coverage.md", "docs/home.md")]
    home = first_page(at_the_top(documents.read(root, "docs/home.md"), "docs/home.md"), documents.read(root, "README.md"))
    index = [within(linked(home, links, ""), "README.md", pages), ""]
    index += toctree("Guides", guides)
    index += toctree("Reference", ["reference/index", "docs/coverage.md"])
    index += toctree("More", rest + ["CONTRIBUTING.md", "CHANGELOG.md"] +
                     (["examples/README.md"] if os.path.exists(os.path.join(root, "examples/README.md")) else []))
    write(os.path.join(site, "index.md"), "\n".join(index))
    shutil.copyfile(os.path.join(root, "docs", "tool", "conf.py"), os.path.join(site, "conf.py"))
    shutil.copytree(os.path.join(root, "docs", "tool", "static"), os.path.join(site, "_static"), dirs_exist_ok=True)
    write(os.path.join(site, "_static", "texts.js"), texts(site))
