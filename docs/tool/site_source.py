"""site_source.py -- what Sphinx reads: the documents with names of tern's as links to the reference, and their order."""
import os
import re
import shutil

import documents
import headers
import markdown

GUIDES = ("install", "first-steps", "rules", "devices", "autograd", "modules", "data", "which-file", "saving", "mixed-precision",
          "recorded-steps", "parallel", "fine-tuning", "kernels", "matrix-units", "embedding", "cpp", "from-pytorch", "idioms",
          "from-cuda", "troubleshooting", "drivers", "examples", "cheatsheet")
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
        return f"{match.group(1)} (`{there}`)"
    return re.sub(r"(?<!!)\[([^\]`]*)\]\(([^)\s]+)\)", answer, text)


def toctree(title, entries):
    return ["```{toctree}", f":caption: {title}", ":maxdepth: 1", ""] + entries + ["```", ""]


def write_site(root, out):
    """OUT/site/: README.md is the first page, docs/ lies below it as in the repository."""
    from __main__ import write
    site = os.path.join(out, "site")
    links = markdown.Links(headers.read_all(root))
    pages = [p for p in documents.documents(root) if not p.startswith(("bench/", "debian/", "python/"))]
    for path in pages:
        up = "../" * path.count("/")
        write(os.path.join(site, path), within(linked(documents.read(root, path), links, up), path, pages))
    for folder, kinds in (("docs", (".svg",)), ("docs/guide", (".svg",)), ("docs/pictures", (".svg", ".png"))):
        if os.path.isdir(os.path.join(root, folder)):
            for name in os.listdir(os.path.join(root, folder)):
                if name.endswith(kinds):
                    os.makedirs(os.path.join(site, folder), exist_ok=True)
                    shutil.copyfile(os.path.join(root, folder, name), os.path.join(site, folder, name))
    shutil.copytree(os.path.join(out, "reference"), os.path.join(site, "reference"), dirs_exist_ok=True)
    guides = [f"docs/guide/{g}.md" for g in GUIDES if os.path.exists(os.path.join(root, f"docs/guide/{g}.md"))]
    rest = [p for p in documents.documents(root) if re.match(r"docs/\w+\.md$", p) and p != "docs/coverage.md"]
    index = ["# tern", "", "```{include} README.md", ":start-line: 1", "```", ""]
    index += toctree("Guides", guides)
    index += toctree("Reference", ["reference/index", "docs/coverage.md"])
    index += toctree("More", rest + ["CONTRIBUTING.md", "CHANGELOG.md"] +
                     (["examples/README.md"] if os.path.exists(os.path.join(root, "examples/README.md")) else []))
    write(os.path.join(site, "index.md"), "\n".join(index))
    shutil.copyfile(os.path.join(root, "docs", "tool", "conf.py"), os.path.join(site, "conf.py"))
