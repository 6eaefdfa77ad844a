"""conf.py -- how Sphinx builds the site: Debian 12's Sphinx and MyST, no theme from elsewhere, nothing fetched."""
project = "tern"
author = "tern's authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
master_doc = "index"
exclude_patterns = ["README.md"]
html_theme = "alabaster"
html_theme_options = {"page_width": "72em", "sidebar_width": "17em", "font_size": "16px", "show_powered_by": False,
                      "description": "PyTorch's vocabulary for C"}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_title = "tern"
myst_heading_anchors = 6
suppress_warnings = ["myst.header", "toc.not_readable"]
highlight_language = "none"
smartquotes = False
