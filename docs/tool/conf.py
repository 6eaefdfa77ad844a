"""conf.py -- how Sphinx builds the site, with Debian 12's Sphinx or a later one: the theme Furo, which docs/tool/theme finds, or Sphinx's
own plain one where there is no Furo. Pages need no server and fetch nothing from elsewhere."""
import importlib.util

project = "tern"
author = "tern's authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
master_doc = "index"
exclude_patterns = ["README.md"]
if importlib.util.find_spec("furo"):
    html_theme = "furo"
    html_theme_options = {"navigation_with_keys": True}
    pygments_style, pygments_dark_style = "xcode", "github-dark"
    if not importlib.util.find_spec("pygments.styles.github_dark"):
        pygments_dark_style = "monokai"
    html_css_files = ["tern.css", "furo.css"]
else:
    html_theme = "alabaster"
    html_theme_options = {"page_width": "72em", "sidebar_width": "17em", "font_size": "16px", "show_powered_by": False,
                          "description": "PyTorch's vocabulary for C"}
    html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
    html_css_files = ["tern.css"]
html_static_path = ["_static"]
html_js_files = ["excerpts.js"]
html_copy_source = False
html_show_search_summary = False  # excerpts.js shows them, also where pages are opened as files
html_show_sphinx = False
html_show_copyright = False
html_title = "tern"
myst_heading_anchors = 6
suppress_warnings = ["myst.header", "toc.not_readable"]
highlight_language = "none"
smartquotes = False


def setup(app):
    """The pages of functions, more than a thousand, have the same list of pages beside them, which is made once."""
    lists = {}

    def once(_app, page, _template, context, _doctree):
        if not page.startswith("reference/tern_"):
            return
        make = context["toctree"]

        def cached(**options):
            key = repr(sorted(options.items()))
            if key not in lists:
                lists[key] = make(**options)
            return lists[key]
        context["toctree"] = cached
    app.connect("html-page-context", once, priority=400)
