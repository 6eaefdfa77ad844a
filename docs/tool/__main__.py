"""docs/tool -- the documentation: `python3 docs/tool COMMAND OUT`.

reference OUT   reads the public headers: OUT/reference.json, OUT/reference/*.md, OUT/man/man3 and man7
site OUT        the same, and the sources of a site that Sphinx builds: docs/, guides with their links
check           text for each function, links, and names that the documents use
environment     writes the variables of src/base/env.def into docs/environment.md and src/tool/tern.1
snippets OUT    C sources of the programs in the documents (see snippets.py)"""
import json
import os
import sys

import headers
import man
import markdown
import slots

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def write(path, text):
    """Writes what is not there in that form already, so that what is made of it is made once."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def describe(pages, tables):
    return {item.names[0]: slots.slots(item, section, page, tables)
            for page in pages for section in page.sections for item in section.items() if item.kind == "function"}


def as_json(pages, described):
    def item_dict(item):
        return item.as_dict() | ({"slots": described[item.names[0]]} if item.kind == "function" else {})
    return [{"header": page.path, "title": page.title, "text": page.text,
             "sections": [{"title": s.title, "text": s.text,
                           "groups": [[item_dict(i) for i in g] for g in s.groups if g]} for s in page.sections]}
            for page in pages]


def release_date():
    """The day of SOURCE_DATE_EPOCH, else one that does not change: pages are the same when made again."""
    import datetime
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", 1795305600))
    return datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%d")


def reference(out):
    pages = headers.read_all(ROOT)
    tables = slots.Tables(ROOT, pages)
    described, links = describe(pages, tables), markdown.Links(pages)
    write(os.path.join(out, "reference.json"), json.dumps(as_json(pages, described), indent=1) + "\n")
    for page in pages:
        write(os.path.join(out, "reference", page.slug + ".md"),
              markdown.header_page(page, described, links, tables))
        for section in page.sections:
            for items in headers.families(section):
                write(os.path.join(out, "reference", items[0].names[0] + ".md"),
                      markdown.function_page(items, page, section, described, links, tables))
    write(os.path.join(out, "reference", "index.md"), markdown.contents(pages))
    write(os.path.join(out, "reference", "functions.md"), markdown.by_name(pages, described, links))
    with open(os.path.join(ROOT, "include", "tern", "tern.hpp"), encoding="utf-8") as file:
        write(os.path.join(out, "reference", "cpp.md"), markdown.cpp_page(file.read()))
    made = man.pages(pages, described, tables, release_date())
    for path, text in made.items():
        write(os.path.join(out, "man", path), text)
    print(f"{len(pages)} headers, {len(described)} functions, {len(made)} manual pages")


def main(arguments):
    import check
    import environment
    import site_source
    import snippets
    commands = {"reference": reference, "site": lambda out: (reference(out), site_source.write_site(ROOT, out)),
                "check": lambda *a: sys.exit(check.run(ROOT)), "snippets": lambda out: snippets.write_all(ROOT, out),
                "environment": lambda: environment.write(ROOT)}
    if not arguments or arguments[0] not in commands:
        sys.exit(__doc__)
    commands[arguments[0]](*arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
