"""snippets.py -- the programs in the documents: every fenced c and cpp block, as sources that are compiled and run.

In a document the blocks of one language follow each other in one program:

    ```c                statements of main, in order
    ```c top            what stands before main: functions, types, includes
    ```c program        a program of its own; so is one in which a line begins with "int main("
    ```c compiled       statements that are compiled and not run: they need files or devices that a test has not
    ```c refused        statements that record an error, whose message is printed
    ```c internal       functions of the library itself: compiled with src/ and not linked
    ```c broken         statements that do not compile; the test tries
    ```output           what was printed since the last such block; ... stands for anything
    <!-- c ... -->      a block that a reader need not see, of any of these kinds
    <!-- c new -->      what follows is another program

Statements stand between `tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL);` and `return 0;`."""
import os
import re

import documents

HEAD = '''/* {name} -- the snippets of {path}; made by docs/tool. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>
'''
REFUSED = '''{{
tern_set_error_policy(TERN_ERRORS_RECORD, NULL, NULL);
#line {line} "{path}"
{code}
if (tern_last_status() == TERN_OK) {{ fprintf(stderr, "{path}:{line}: is not refused\\n"); return 1; }}
printf("%s\\n", tern_last_error());
tern_clear_error();
tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL);
}}'''


class Program:
    def __init__(self, path, language):
        self.path, self.language = path, language
        self.top, self.body, self.whole, self.output = [], [], [], []
        self.broken, self.internal = [], []

    def empty(self):
        return not (self.body or self.whole or self.top or self.broken or self.internal)

    def source(self, name):
        entry = f"snippet_{name}"
        if self.language == "cpp":
            return self.cpp_source(name, entry)
        if self.whole:
            return f"/* {name} -- a program of {self.path}; made by docs/tool. */\n#define main {entry}\n" + "\n".join(self.whole) + "\n"
        return HEAD.format(name=name, path=self.path) + "\n".join(self.top) + f"\nint {entry}(void)\n{{\n" + \
            "tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL);\n" + "\n".join(self.body) + "\nreturn 0;\n}\n"

    def cpp_source(self, name, entry):
        """All programs are linked into one: each has a namespace of its own, as two pages may have a class of the same name. Lines
        that begin with #include go before it."""
        text = "\n".join(self.whole or self.top)
        head = HEAD.format(name=name, path=self.path) + "#include <tern/tern.hpp>\n"
        head += "".join(line + "\n" for line in re.findall(r"^#include .*", text, re.M))
        text = re.sub(r"^#include .*", "", text, flags=re.M)
        if self.whole:
            text = f"#define main {entry}_main\n{text}\n#undef main\n"
        else:
            text += f"\nstatic int {entry}_main()\n{{\n" + "\n".join(self.body) + "\nreturn 0;\n}\n"
        return f'{head}namespace page_{name} {{\n{text}}}\nextern "C" int {entry}();\n' + \
            f"int {entry}() {{ return page_{name}::{entry}_main(); }}\n"

    def broken_sources(self):
        for line, code in self.broken:
            yield line, HEAD.format(name="broken", path=self.path) + "\n".join(self.top) + \
                f"\nint broken(void);\nint broken(void)\n{{\n{code}\nreturn 0;\n}}\n"


def stem(path):
    return re.sub(r"\W+", "_", os.path.splitext(path.replace("docs/guide/", ""))[0]).lower().strip("_")


def programs(path, text):
    """The programs of a document, in order."""
    out, open_ones, last = [], {}, None

    def current(language):
        if language not in open_ones:
            open_ones[language] = Program(path, language)
            out.append(open_ones[language])
        return open_ones[language]

    for block in documents.blocks(text):
        language, kinds = block.language, block.words[1:]
        if language == "output":
            if last is not None:
                last.output += block.lines
            continue
        if language not in ("c", "cpp"):
            continue
        if "new" in kinds:
            open_ones.pop(language, None)
        code = "\n".join(block.lines)
        marked = f'#line {block.number} "{path}"\n{code}'
        if "program" in kinds or re.search(r"^int main\(", code, re.M):
            last = Program(path, language)
            last.whole.append(marked)
            out.append(last)
            continue
        last = current(language)
        if "internal" in kinds:
            last.internal.append(marked)
        elif "top" in kinds:
            last.top.append(marked)
        elif "broken" in kinds:
            last.broken.append((block.number, code))
        elif "refused" in kinds:
            last.body.append(REFUSED.format(line=block.number, path=path, code=code))
        elif "compiled" in kinds:
            last.body.append(f'if (getenv("TERN_GUIDE_ALL")) {{\n{marked}\n}}')
        elif code.strip():
            last.body.append(marked)
    return [program for program in out if not program.empty()]


def all_programs(root):
    """[(name, Program)] of all documents."""
    out = []
    for path in documents.documents(root):
        found = programs(path, documents.read(root, path))
        for i, program in enumerate(found):
            out.append((stem(path) + (f"_{i + 1}" if len(found) > 1 else ""), program))
    return out


def write_all(root, out):
    """OUT/<name>.c, OUT/<name>.output, OUT/broken/, and OUT/programs.txt: a name and a language a line."""
    from __main__ import write
    listed, table = [], []
    for name, program in all_programs(root):
        if program.body or program.whole:
            write(os.path.join(out, f"{name}.{program.language}"), program.source(name))
            write(os.path.join(out, name + ".output"), "\n".join(program.output) + "\n" if program.output else "")
            listed.append(f"{name} {program.language}")
            table.append(name)
        if program.internal:
            write(os.path.join(out, "internal", name + ".c"),
                  "#include <tern/tern.h>\n#include \"nn/layers/layer.h\"\n" + "\n".join(program.internal) + "\n")
        for line, source in program.broken_sources():
            write(os.path.join(out, "broken", f"{name}_{line}.c"), source)
    write(os.path.join(out, "programs.txt"), "".join(line + "\n" for line in listed))
    rows = "".join(f"int snippet_{name}();\n" for name in table)
    cases = "".join(f'    {{"{name}", snippet_{name}}},\n' for name in table)
    write(os.path.join(out, "table.h"), "/* table.h -- the programs of the documents; made by docs/tool. */\n" + rows +
          "static const struct {\n    const char *name;\n    int (*main)();\n} programs[] = {\n" + cases + "};\n")
