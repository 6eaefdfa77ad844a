"""selftest.py -- the tools see what they are to see: comments and what they cover, names and links that lead nowhere."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check
import documents
import headers
import slots
import snippets

HEADER = '''/* x.h -- an example.
 *
 *     int code;
 */
#ifndef TERN_X_H
#define TERN_X_H
/* Over everything. */
TERN_API tern_tensor *tern_one(tern_tensor *x, tern_shape dims);
TERN_API tern_tensor *tern_one_dim(tern_tensor *x); /* over dims */

TERN_API tern_tensor *tern_bare(tern_tensor *x);
/* ---- a section ---
 * With text. Errors: TERN_ERR_SHAPE for none. */
/* x: (N, C); returns x. */
TERN_API tern_tensor *tern_two_(tern_tensor *x,
                                double (*f)(double));
#ifdef __cplusplus
TERN_API void tern_hidden(void);
#endif
#endif
'''


def reads_headers():
    page = headers.Reader("tern/x.h", headers.without_cpp(HEADER.split("\n"))).read()
    one, one_dim, bare, two = page.functions()
    assert page.title == "an example." and page.slug == "x"
    assert one.text == "Over everything." and one_dim.text == "over dims" and one_dim.lead == "Over everything."
    assert bare.text == "" and check.texts([page]) == ["tern/x.h: tern_bare: without text"]
    assert page.sections[1].title == "a section" and page.sections[1].text.startswith("With text.")
    assert slots.arguments(two) == [("tern_tensor *", "x"), ("double (*)(double)", "f")], slots.arguments(two)
    assert slots.said_of("x", [two.text]) == "(N, C)"
    assert slots.threads(two, page.sections[1], page) == "any; calls that change the same tern_tensor must not overlap"
    bare.text = "A report belongs to one thread. It is new."
    assert slots.threads(bare, page.sections[0], page) == "A report belongs to one thread."
    assert check.answers("| a | `tern_a` |  |\n| b |  | why |\n| c |  |  |\n") == ["docs/coverage.md:3: c has no answer"]
    assert len(check.versions({"tern_a": "0.2.0", "tern_b": "0.2.0", "tern_c": "soon"}, {"tern_a", "tern_c"})) == 2
    assert slots.errors(two, page.sections[1], page) == "Errors: TERN_ERR_SHAPE for none."


def reads_documents():
    text = "# One\n[a](#two) [b](#one) `tern_nothing` `src/no.c` [c](none.md)\n```c\nint tern_neither;\n```\n```text\ntern_babble\n```\n"
    with tempfile.TemporaryDirectory() as root:
        with open(os.path.join(root, "a.md"), "w", encoding="utf-8") as file:
            file.write(text)
        found = check.links(root, "a.md", text, lambda path: documents.anchors(documents.read(root, path)))
        found += check.paths(root, "a.md", text) + check.names("a.md", text, {"tern_something"})
    assert found == ["a.md:2: a.md has no #two", "a.md:2: there is no none.md", "a.md:2: there is no src/no.c",
                     "a.md:2: nothing is called tern_nothing", "a.md:4: nothing is called tern_neither"], found


def joins_snippets():
    text = "```c\na();\n```\n```output\n1\n```\n<!-- c top\nint t;\n-->\n```c refused\nb();\n```\n```output\n2\n```\n" \
           "```c program\nint main(void)\n```\n<!-- c new -->\n```c\nd();\n```\n```c broken\ne();\n```\n"
    first, whole, second = snippets.programs("p.md", text)
    source = first.source("p")
    assert source.index("int t;") < source.index("a();") < source.index("b();") and first.output == ["1", "2"]
    assert "#define main snippet_p_2" in whole.source("p_2") and "d();" in second.source("p_3")
    assert "is not refused" in source and "d();" not in source and [line for line, _ in second.broken] == [24], second.broken


CLASS = """```cpp KIND
#include <vector>
struct Net {
    std::vector<int> all = {VALUE, VALUE};
    int first() const;
};
int Net::first() const { return all[0]; }
REST
```
"""


def joins_pages():
    """Two pages with a class of the same name are one program, and each runs its own."""
    compiler = shutil.which("c++")
    if not compiler:
        print("SKIPPED: there is no C++ compiler, two pages with a class of the same name were not compiled")
        return
    pages = {"a": CLASS.replace("KIND", "top").replace("VALUE", "1").replace("REST", "") + "```cpp\nif (Net().first() != 1) return 1;\n```\n",
             "b": CLASS.replace("KIND", "program").replace("VALUE", "2").replace("REST", "int main() { return Net().first() != 2; }")}
    with tempfile.TemporaryDirectory() as folder:
        sources = [os.path.join(folder, name + ".cpp") for name in (*pages, "main")]
        for source, (name, text) in zip(sources, pages.items()):
            program, = snippets.programs(f"docs/guide/{name}.md", text)
            with open(source, "w", encoding="utf-8") as file: # without tern's headers, which neither needs
                file.write(program.source(name).replace("#include <tern/tern.h>\n", "").replace("#include <tern/tern.hpp>\n", ""))
        with open(sources[-1], "w", encoding="utf-8") as file:
            file.write('extern "C" int snippet_a(), snippet_b();\nint main() { return snippet_a() + 2 * snippet_b(); }\n')
        out = os.path.join(folder, "both")
        subprocess.run([compiler, "-std=c++17", "-O0", *sources, "-o", out], check=True)
        status = subprocess.run([out], check=False).returncode
    assert status == 0, f"of two pages with a class of the same name one runs the other's: {status}"


def holds_the_first_page():
    """README.md's length, its commands, and numbers that no result has."""
    results = {"bench/results/a.md": "| b | 3.05 |"}
    good = "./ci/demo\n./ci/test\n| b | 3.05 |\n[a](bench/results/a.md)\n"
    assert check.first_page(good, results) == []
    assert any("3.06" in line for line in check.first_page(good.replace("3.05", "3.06"), results))
    assert any("3.0 " in line for line in check.first_page(good.replace("3.05", "3.0"), results))
    assert len(check.first_page("\n" * 30 + good + "\n" * 150, results)) == 3


reads_headers()
reads_documents()
holds_the_first_page()
joins_snippets()
joins_pages()
print("docs/tool: ok")
