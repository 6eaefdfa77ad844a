"""documents.py -- the Markdown documents of the repository: which there are, their blocks and their headings."""
import glob
import os
import re

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/guide/*.md", "examples/*.md", "bench/*.md",
             "debian/*.md", "python/*.md")
FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})(.*)$")


def documents(root):
    found = []
    for pattern in DOCUMENTS:
        found += sorted(glob.glob(os.path.join(root, pattern)))
    return [os.path.relpath(path, root) for path in found]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


class Block:
    """A fenced block, or a comment <!-- c ... --> that hides what a reader need not see."""

    def __init__(self, words, lines, number, hidden):
        self.words, self.lines, self.number, self.hidden = words, lines, number, hidden

    @property
    def language(self):
        return self.words[0] if self.words else ""


def blocks(text):
    """Fenced blocks and hidden ones, in order; number is the line that the first of theirs stands on."""
    out, lines, i = [], text.split("\n"), 0
    while i < len(lines):
        fence = FENCE.match(lines[i])
        hidden = re.match(r"^<!-- (c|cpp)\b(.*?)(-->)?$", lines[i])
        if fence:
            end = i + 1
            while end < len(lines) and not re.match(r"^ {0,3}" + fence.group(2)[0] + "{" + str(len(fence.group(2))) + r",}\s*$",
                                                    lines[end]):
                end += 1
            indent = len(fence.group(1))
            out.append(Block(fence.group(3).split(), [l[indent:] for l in lines[i + 1:end]], i + 2, False))
            i = end
        elif hidden:
            end = i
            while "-->" not in lines[end]:
                end += 1
            out.append(Block([hidden.group(1)] + hidden.group(2).split(), lines[i + 1:end], i + 2, True))
            i = end
        i += 1
    return out


def prose(text):
    """The text without its fenced blocks, as lines with numbers."""
    out, fence = [], None
    for number, line in enumerate(text.split("\n"), 1):
        match = FENCE.match(line)
        if match and fence is None:
            fence = match.group(2)
        elif match and match.group(2).startswith(fence) and not match.group(3).strip():
            fence = None
        elif fence is None:
            out.append((number, line))
    return out


def slug(heading):
    """The anchor that GitHub and Sphinx (MyST) make of a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def anchors(text):
    found = {slug(m.group(1)) for _, line in prose(text) for m in [re.match(r"#{1,6} +(.*?)\s*#*$", line)] if m}
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text)) | set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))
