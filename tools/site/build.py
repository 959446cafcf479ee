"""The pages of the site: which there are, what their links become, what stands around them."""

import fnmatch
import html
import os
import re
import shutil

import check
import contents
import highlight
import search
from inline import Wrong, escape
from man import render_man
from markdown import render_page

HERE = os.path.dirname(os.path.abspath(__file__))
PICTURES = (".svg", ".png", ".jpg", ".webp")
# A file that a document links to is a page; a larger one is not for reading.
MOST_BYTES = 400_000
SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
MAN_PATH = re.compile(r"^docs/man/(.+)\.([1-9])$")
MAN_COMMAND = re.compile(r"<code>man (?:([1-8]) )?([a-z][a-z0-9.-]*)</code>")


class Page:
    def __init__(self, path):
        self.path = path            # in the tree
        self.url = url_of(path)     # in the site
        self.title = ""
        self.label = ""             # in the navigation
        self.part = self.group = ""
        self.description = ""
        self.body = ""
        self.is_file = False        # text that is not a document


def url_of(path):
    if path == "README.md":
        return "index.html"
    match = MAN_PATH.match(path)
    if match:
        return f"man/{match.group(1)}.{match.group(2)}.html"
    return re.sub(r"\.md$", "", path) + ".html"


def relative(url, page_url):
    """The address of url, as a page of the site writes it."""
    path, _, anchor = url.partition("#")
    where = os.path.relpath(path, os.path.dirname(page_url) or ".")
    return where + ("#" + anchor if anchor else "")


class Site:
    def __init__(self, tree):
        self.tree = tree
        self.pages = {}         # by path
        self.todo = []          # pages that were linked to and are not rendered yet
        self.pictures = set()
        self.man = {}           # (name, section) -> url
        self.navigation = []    # (part, [(group, [page, ...]), ...])

    # What there is.

    def full(self, path):
        return os.path.join(self.tree, path)

    def page(self, path):
        if path not in self.pages:
            self.pages[path] = Page(path)
            self.todo.append(self.pages[path])
        return self.pages[path]

    def matching(self, pattern):
        folder, name = os.path.split(pattern)
        if "*" in folder:
            above, middle = os.path.split(folder)
            found = [os.path.join(above, d, name) for d in sorted(os.listdir(self.full(above)))
                     if fnmatch.fnmatch(d, middle)]
            return [path for path in found if os.path.isfile(self.full(path))]
        return [os.path.join(folder, n) for n in sorted(os.listdir(self.full(folder)))
                if fnmatch.fnmatch(n, name)]

    def read_navigation(self):
        for part, groups in contents.NAVIGATION:
            listed = []
            for group, lines in groups:
                listed.append((group, self.read_group(part, group, lines)))
            self.navigation.append((part, listed))
        for pattern in contents.WHOLE:
            for path in self.matching(pattern):
                if path not in self.pages:
                    self.put_under_more(path)

    def read_group(self, part, group, lines):
        pages = []
        for line in lines.split("\n"):
            pattern, _, label = line.strip().partition(" ")
            if not pattern:
                continue
            paths = self.matching(pattern) if "*" in pattern else [pattern]
            if not paths or not os.path.isfile(self.full(paths[0])):
                raise Wrong(f"contents.py: there is no {pattern}")
            for path in paths:
                if path not in self.pages:
                    page = self.page(path)
                    page.part, page.group, page.label = part, group, label
                    pages.append(page)
        return pages

    def put_under_more(self, path):
        page = self.page(path)
        page.part, page.group = self.navigation[0][0], "More"
        dict(self.navigation[0][1])["More"].append(page)

    # What links become.

    def resolver(self, page):
        def resolve(url, is_picture):
            if SCHEME.match(url):
                if not is_picture and re.match(r"(?:https?://|mailto:)", url):
                    return url
                raise Wrong(f"{page.path}: the address {url} is not allowed here")
            path, _, anchor = url.partition("#")
            if not path:
                return url
            where = os.path.normpath(os.path.join(os.path.dirname(page.path), path))
            if where.startswith("..") or os.path.isabs(where):
                raise Wrong(f"{page.path}: {url} leads out of the tree")
            if os.path.isdir(self.full(where)):
                where = os.path.join(where, "README.md")
            if not os.path.isfile(self.full(where)):
                raise Wrong(f"{page.path}: {url} leads nowhere")
            if where.endswith(PICTURES):
                self.pictures.add(where)
                return relative(where, page.url)
            return relative(self.page(where).url + ("#" + anchor if anchor else ""), page.url)

        return resolve

    def link_man(self, page):
        def link(name, section):
            url = self.man.get((name, section))
            return relative(url, page.url) if url and url != page.url else None

        return link

    def link_man_commands(self, page, body):
        """`man heddle.conf` in a document leads to that page."""
        def show(match):
            for section in [match.group(1)] if match.group(1) else "12345678":
                url = self.link_man(page)(match.group(2), section)
                if url:
                    return f'<a href="{escape(url)}">{match.group()}</a>'
            return match.group()

        return MAN_COMMAND.sub(show, body)

    # Rendering.

    def read(self, path):
        with open(self.full(path), "rb") as f:
            data = f.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES or b"\0" in data:
            raise Wrong(f"{path} is linked to, but is no text to read")
        return data.decode("utf-8", "replace")

    def render(self, page):
        text = self.read(page.path)
        try:
            if MAN_PATH.match(page.path):
                page.body, page.title, page.description = render_man(text, self.link_man(page))
            elif page.path.endswith(".md"):
                body, page.title = render_page(text, self.resolver(page))
                page.body = self.link_man_commands(page, body)
            else:
                self.render_file(page, text)
        except Wrong as problem:
            prefix = "" if str(problem).startswith(page.path) else f"{page.path}: "
            raise Wrong(f"{prefix}{problem}") from None
        page.title = page.title or page.path
        page.label = page.label or page.title
        if not page.description:
            page.description = first_sentence(page.body)

    def render_file(self, page, text):
        kind = os.path.splitext(page.path)[1][1:]
        page.title, page.is_file, page.group = page.path, True, "Files"
        shown = highlight.code_block(text.rstrip("\n"), kind)
        page.body = f"<h1>{escape(page.path)}</h1>\n{shown}"

    def load(self):
        self.read_navigation()
        for path, page in self.pages.items():
            match = MAN_PATH.match(path)
            if match:
                self.man[match.groups()] = page.url
        while self.todo:
            self.render(self.todo.pop(0))
        urls = {}
        for page in self.pages.values():
            other = urls.setdefault(page.url, page)
            if other is not page:
                raise Wrong(f"{page.path} and {other.path} would be one page")

    # What stands around a page.

    def show_navigation(self, current):
        out = []
        for part, groups in self.navigation:
            out.append(f"<h2>{escape(part)}</h2>")
            for group, pages in groups:
                if not pages:
                    continue
                is_open = " open" if current in pages else ""
                out.append(f"<details{is_open}><summary>{escape(group)}</summary><ul>")
                for page in pages:
                    here = ' aria-current="page"' if page is current else ""
                    out.append(f'<li><a href="{escape(relative(page.url, current.url))}"{here}>'
                               f'{escape(page.label)}</a></li>')
                out.append("</ul></details>")
        return "\n".join(out)

    def show_neighbours(self, current):
        pages = [p for _, groups in self.navigation for _, group in groups for p in group]
        if current not in pages:
            return ""
        at = pages.index(current)
        out = []
        if at > 0:
            out.append(f'<a rel="prev" href="{escape(relative(pages[at - 1].url, current.url))}">'
                       f'← {escape(pages[at - 1].label)}</a>')
        if at + 1 < len(pages):
            out.append(f'<a rel="next" href="{escape(relative(pages[at + 1].url, current.url))}">'
                       f'{escape(pages[at + 1].label)} →</a>')
        return '<nav class="neighbours" aria-label="Neighbours">' + "".join(out) + "</nav>"

    def show_page(self, page, template, version):
        where = " / ".join(escape(t) for t in (page.part, page.group) if t)
        values = {
            "lang": "zh-CN" if ".zh-CN." in page.path else "en",
            "title": escape(page.title if page.path == "README.md"
                            else f"{page.title} - heddle"),
            "description": escape(page.description),
            "root": escape(relative(".", page.url).rstrip("/") + "/"),
            "version": escape(version),
            "navigation": self.show_navigation(page),
            "where": where,
            "toc": show_toc(page.body),
            "body": page.body,
            "neighbours": self.show_neighbours(page),
            "source": escape(page.path),
        }
        return re.sub(r"\{\{(\w+)\}\}", lambda m: values[m.group(1)], template)

    def write(self, folder, version):
        """Makes folder anew; it must be ours or empty."""
        prepare_folder(folder)
        with open(os.path.join(HERE, "page.html"), encoding="utf-8") as f:
            template = f.read()
        for page in self.pages.values():
            write_file(folder, page.url, self.show_page(page, template, version))
        for picture in self.pictures:
            copy_file(self.full(picture), os.path.join(folder, picture))
        for name in ("site.css", "theme.js", "site.js", "search.js"):
            copy_file(os.path.join(HERE, name), os.path.join(folder, name))
        entries = []
        for page in self.pages.values():
            weight = contents.PAGE_WEIGHT.get(page.path, contents.WEIGHT.get(page.group, 1))
            entries.append((page.url, page.title, page.group, weight,
                            "" if page.is_file else page.body))
        write_file(folder, "index.js", search.make_index(entries))


MARK = ".heddle-site"


def prepare_folder(folder):
    if os.path.isdir(folder) and os.listdir(folder):
        if not os.path.isfile(os.path.join(folder, MARK)):
            raise Wrong(f"{folder} has files that are not of a site: choose another folder")
        shutil.rmtree(folder)
    os.makedirs(folder, exist_ok=True)
    write_file(folder, MARK, "Made by tools/site; it is made anew each time.\n")


def remove_folder(folder):
    """Removes a site, and nothing that is not one."""
    if os.path.isfile(os.path.join(folder, MARK)):
        shutil.rmtree(folder)


def write_file(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write(text)


def copy_file(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)


def first_sentence(body):
    match = re.search(r"<p>(.*?)</p>", body, re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]*>", "", match.group(1))) if match else ""
    words = re.sub(r"\s+", " ", words).strip()
    end = re.match(r".{20,180}?[.!?](?=\s|$)", words)
    return end.group() if end else words[:180]


def show_toc(body):
    """The headings of the second and third level, if there are enough to need a list."""
    found = re.findall(r'<h([23]) id="([^"]*)">(.*?) <a class="anchor"', body, re.DOTALL)
    if len(found) < 3:
        return ""
    items = []
    for level, anchor, text in found:
        plain = re.sub(r"</?(?:a|img)\b[^>]*>", "", text)
        items.append(f'<li class="h{level}"><a href="#{anchor}">{plain}</a></li>')
    return ('<nav class="toc" aria-label="On this page"><h2>On this page</h2><ul>'
            + "\n".join(items) + "</ul></nav>")


def read_version(tree):
    with open(os.path.join(tree, "CMakeLists.txt"), encoding="utf-8") as f:
        match = re.search(r"project\(heddle VERSION ([0-9.]+)", f.read())
    return match.group(1) if match else "?"


def build(tree, folder):
    """Makes the site of tree in folder; gives the number of pages. Raises Wrong."""
    site = Site(tree)
    site.load()
    site.write(folder, read_version(tree))
    wrong = check.check_site(folder)
    if wrong:
        raise Wrong("\n".join(wrong))
    return len(site.pages)
