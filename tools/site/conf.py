# SPDX-License-Identifier: GPL-2.0-only
"""Sphinx's settings; site.py fills the folder that this is copied to."""

import os

project = "hamlyn"
author = "hamlyn maintainers"
version = release = os.environ.get("HAMLYN_VERSION", "")

extensions = ["sphinx.ext.graphviz"]
graphviz_output_format = "svg"
root_doc = "index"
language = "en"
highlight_language = "none"

html_theme = "furo"
html_title = f"hamlyn {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_copy_source = False
# Debian 12's furo is dark only for who has switched it so; this also heeds what the reader's
# system says, as later ones do.
html_theme_options = {
    "dark_css_variables": {
        "color-foreground-primary": "#d0d4d9",
        "color-foreground-secondary": "#9aa3ad",
        "color-foreground-muted": "#7f8993",
        "color-foreground-border": "#5d666f",
        "color-background-primary": "#14171a",
        "color-background-secondary": "#1a1e22",
        "color-background-hover": "#20262c",
        "color-background-hover--transparent": "#20262c00",
        "color-background-border": "#2f363d",
        "color-background-item": "#3b434b",
        "color-brand-primary": "#6cb2f5",
        "color-brand-content": "#6cb2f5",
        "color-highlighted-background": "#0d3a63",
        "color-highlight-on-target": "#3a3a10",
        "color-admonition-background": "#1a1e22",
        "color-card-border": "#2f363d",
        "color-card-background": "#1a1e22",
        "color-card-marginals-background": "#20262c",
    },
}
