"""Checks a site that was made: links whole, nothing from elsewhere, no script but ours.

    check_site(folder)      a list of "page: what is wrong"

It reads the files as a browser would, and does not know how they were made.
"""

import html.parser
import os
import re
from urllib.parse import unquote

# Attributes that make a browser load something.
LOADING = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "srcset"),
           ("iframe", "src"), ("object", "data"), ("embed", "src"), ("video", "src"),
           ("audio", "src"), ("form", "action")}
SCHEME = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*:|//)")


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.ids, self.links, self.loads, self.wrong = set(), [], [], []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            value = value or ""
            if name == "id":
                if value in self.ids:
                    self.wrong.append(f"two elements have the id {value}")
                self.ids.add(value)
            elif name.startswith("on"):
                self.wrong.append(f"a script in the attribute {name}")
            elif name == "style":
                self.wrong.append("an attribute style")
            elif (tag, name) in LOADING:
                self.loads.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)
        if tag == "script" and not dict(attrs).get("src"):
            self.wrong.append("a script in the page")
        if tag in ("style", "base", "iframe", "object", "embed"):
            self.wrong.append(f"an element {tag}")


def check_reference(name, url, pages, folder):
    """What is wrong with a link or a resource of the page, or None."""
    path, _, anchor = url.partition("#")
    path = unquote(path)
    where = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
    if where.startswith(".."):
        return f"{url} leads out of the site"
    if not os.path.isfile(os.path.join(folder, where)):
        return f"{url} leads nowhere"
    if anchor and unquote(anchor) not in (pages[where].ids if where in pages else ()):
        return f"{url}: {where} has no such anchor"
    return None


def check_page(name, page, pages, folder):
    yield from page.wrong
    for url in page.loads:
        if SCHEME.match(url):
            yield f"loads {url}, which is elsewhere"
        else:
            yield check_reference(name, url, pages, folder)
    for url in page.links:
        if SCHEME.match(url):
            if not re.match(r"(?:https?://|mailto:)", url):
                yield f"links to {url}"
        else:
            yield check_reference(name, url, pages, folder)


def check_text(name, text):
    """Style sheets, scripts and pictures that load more."""
    if name.endswith((".css", ".svg")):
        for match in re.finditer(r"@import|url\((?!['\"]?#)[^)]*\)|<script|<foreignObject", text):
            yield f"has {match.group()}"
    if name.endswith(".svg"):
        for match in re.finditer(r"href\s*=\s*[\"'](?!#)[^\"']*", text):
            yield f"has {match.group()}"


def check_site(folder):
    pages, found = {}, []
    for where, _, names in os.walk(folder):
        for file in sorted(names):
            name = os.path.relpath(os.path.join(where, file), folder)
            if not name.endswith((".html", ".css", ".js", ".svg")):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                text = f.read()
            found += [f"{name}: {wrong}" for wrong in check_text(name, text)]
            if name.endswith(".html"):
                pages[name] = Reader()
                pages[name].feed(text)
                pages[name].close()
    for name in sorted(pages):
        found += [f"{name}: {wrong}" for wrong in check_page(name, pages[name], pages, folder)
                  if wrong]
    return found
