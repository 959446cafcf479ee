"""The search's index: every page in sections, as a script that the browser loads when it is needed.

A section begins at a heading or at an option of a manual page, and is found by its heading and its
text; site.js ranks them. The texts are in the index as they are: about 1 MB, which a browser reads
in the time of a key press, and any part of a word can be found.
"""

import html.parser
import json
import re

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6", "dt"}
BLOCKS = HEADINGS | {"p", "li", "td", "th", "tr", "pre", "dd", "div", "br", "blockquote"}


class Sections(html.parser.HTMLParser):
    """The sections of a page: [anchor, heading, text]."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.sections = [["", "", ""]]
        self.heading = None     # the tag we are in
        self.skipping = False   # in the link beside a heading

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag in HEADINGS and (tag == "h1" or values.get("id")):
            self.sections.append([values.get("id", ""), "", ""])
            self.heading = tag
        elif tag == "a" and values.get("class") == "anchor":
            self.skipping = True
        if tag in BLOCKS:
            self.add(" ")

    def handle_endtag(self, tag):
        if tag == self.heading:
            self.heading = None
        elif tag == "a":
            self.skipping = False
        if tag in BLOCKS:
            self.add(" ")

    def handle_data(self, data):
        if not self.skipping:
            self.add(data)

    def add(self, text):
        self.sections[-1][1 if self.heading else 2] += text


def split_sections(body):
    parser = Sections()
    parser.feed(body)
    parser.close()
    found = []
    for anchor, heading, text in parser.sections:
        heading, text = (re.sub(r"\s+", " ", t).strip() for t in (heading, text))
        if heading or text:
            found.append([anchor, heading, text])
    return found


def make_index(pages):
    """The script. pages: (url, title, group, weight, body); a page without a body is found by its
    title alone."""
    listed, sections = [], []
    for url, title, group, weight, body in pages:
        number = len(listed)
        listed.append([url, title, group, weight])
        for section in (split_sections(body) if body else [["", title, ""]]):
            sections.append([number] + section)
    data = json.dumps({"pages": listed, "sections": sections}, ensure_ascii=False,
                      separators=(",", ":"))
    # A script may not have these in a string, in old browsers.
    data = data.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f"heddleSearch.take({data});\n"
