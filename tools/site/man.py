"""Manual pages as HTML: the macros of man(7) that ours use. Any other is an error.

    render_man(text, link)      (HTML, title, description); link(name, section) is the address of
                                another manual page, or None

A page is a stack of frames: .RS opens one, .RE closes it. In a frame, text is gathered into a
paragraph, and .TP and .IP make entries of a definition list, each with an anchor of its own if it
is an option.
"""

import html
import re

from inline import Wrong, escape
from markdown import make_anchors

FONTS = {"B": "b", "I": "i", "R": None, "P": "previous"}
CHARACTERS = {
    "-": "-", "|": "", "&": "", "%": "", "e": "\\", "\\": "\\", " ": "\u00a0", "~": "\u00a0",
    "(dq": '"', "(aq": "'", "(oq": "\u2018", "(cq": "\u2019", "(lq": "\u201c", "(rq": "\u201d",
    "(bu": "\u2022", "(em": "\u2014", "(en": "\u2013", "(ti": "~", "(ha": "^", "(co": "\u00a9",
    "(mu": "\u00d7", "(->": "\u2192",
}
ESCAPE = re.compile(r"\\(f.|\(..|.)", re.DOTALL)
WORD = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|[^\s"\\])(?:\\.|[^\s\\])*)')
PAGE_NAME = re.compile(r"<b>([a-z][a-z0-9.-]*)</b>\(([1-8])\)")
OPTION = re.compile(r"--?[a-z][a-z0-9-]*")


def split_words(rest):
    return [m.group(1).replace('""', '"') if m.group(1) is not None else m.group(2)
            for m in WORD.finditer(rest)]


def show_text(text, font=None):
    """HTML of text with escapes, which begins in this font: "b", "i" or None."""
    runs, previous, at = [], None, 0  # runs: (font, text)
    for match in ESCAPE.finditer(text):
        runs.append((font, text[at:match.start()]))
        at = match.end()
        name = match.group(1)
        if name[0] == "f" and len(name) == 2:
            if name[1] not in FONTS:
                raise Wrong(f"unknown font \\{name}")
            chosen = FONTS[name[1]]
            font, previous = (previous if chosen == "previous" else chosen), font
        elif name in CHARACTERS:
            runs.append((font, CHARACTERS[name]))
        else:
            raise Wrong(f"unknown escape \\{name}")
    runs.append((font, text[at:]))
    joined = []
    for run_font, run in runs:
        if joined and joined[-1][0] == run_font:
            joined[-1][1] += run
        elif run:
            joined.append([run_font, run])
    return "".join(f"<{f}>{escape(t)}</{f}>" if f else escape(t) for f, t in joined)


def show_alternating(words, fonts):
    """.BR a b c: fonts in turn, without blanks between."""
    codes = {"B": "b", "I": "i", "R": None}
    return "".join(show_text(word, codes[fonts[i % 2]]) for i, word in enumerate(words))


class Frame:
    def __init__(self, tag):
        self.tag = tag          # what .RE closes
        self.out = []
        self.words = []         # of the open paragraph
        self.in_list = False    # between <dl> and </dl>, in a <dd>


class Man:
    def __init__(self, link):
        self.link = link
        self.frames = [Frame("")]
        self.anchor_of = make_anchors()
        self.pre = None         # lines between .nf and .fi
        self.tag_next = False   # the next line is the tag of .TP
        self.title = ""
        self.name = []          # the text of NAME
        self.heading = ""

    @property
    def frame(self):
        return self.frames[-1]

    def end_paragraph(self):
        frame = self.frame
        if frame.words:
            text = "\n".join(frame.words)
            frame.out.append(f"<p>{self.link_pages(text)}</p>")
            if self.heading == "NAME":
                self.name.append(text)
            frame.words = []

    def end_list(self):
        self.end_paragraph()
        if self.frame.in_list:
            self.frame.out.append("</dd></dl>")
            self.frame.in_list = False

    def end_frames(self):
        while len(self.frames) > 1:
            self.end_frame()
        self.end_list()

    def end_frame(self):
        self.end_list()
        frame = self.frames.pop()
        self.frame.out += [f'<div class="{frame.tag}">', *frame.out, "</div>"]

    def link_pages(self, text):
        def show(match):
            url = self.link(match.group(1), match.group(2))
            return f'<a href="{escape(url)}">{match.group()}</a>' if url else match.group()

        return PAGE_NAME.sub(show, text)

    def begin_entry(self, tag):
        self.end_paragraph()
        frame = self.frame
        frame.out.append("</dd>" if frame.in_list else "<dl>")
        frame.in_list = True
        plain = re.sub(r"<[^>]*>", "", tag)
        option = OPTION.search(plain) if plain.startswith("-") else None
        if option:
            anchor = self.anchor_of(option.group())
            frame.out.append(f'<dt id="{anchor}">{tag} <a class="anchor" href="#{anchor}" '
                             'aria-label="link to this option">#</a></dt><dd>')
        else:
            frame.out.append(f"<dt>{tag}</dt><dd>")

    def put_text(self, text):
        if self.pre is not None:
            self.pre.append(text)
        elif self.tag_next:
            self.tag_next = False
            self.begin_entry(text)
        else:
            self.frame.words.append(text)

    def put_heading(self, level, words):
        self.end_frames()
        text = " ".join(words)
        self.heading = text
        if text.isupper():
            text = text.capitalize()  # capitals are a terminal's way to show a heading
        anchor = self.anchor_of(show_plain(text))
        self.frame.out.append(f'<h{level} id="{anchor}">{show_text(text)} <a class="anchor" '
                              f'href="#{anchor}" aria-label="link to this heading">#</a>'
                              f'</h{level}>')

    def end_pre(self):
        if self.pre is not None:
            lines, self.pre = self.pre, None
            self.frame.out.append("<pre><code>" + "\n".join(lines).strip("\n") + "</code></pre>")

    def macro(self, name, rest):
        words = split_words(rest)
        if name in ("B", "I"):
            self.put_text(show_text(" ".join(words), name.lower()))
        elif name in ("BR", "RB", "BI", "IB", "IR", "RI"):
            self.put_text(show_alternating(words, name))
        elif name == "TH":
            if len(words) < 2:
                raise Wrong(".TH without a name and a section")
            self.title = f"{show_plain(words[0]).lower()}({words[1]})"
        elif name in ("SH", "SS"):
            self.put_heading(2 if name == "SH" else 3, words)
        elif name in ("PP", "P", "LP"):
            self.end_list()
        elif name == "TP":
            self.end_paragraph()
            self.tag_next = True
        elif name == "IP":
            self.begin_entry(show_text(words[0]) if words else "")
        elif name == "RS":
            self.end_paragraph()
            self.frames.append(Frame("inner" if self.frame.in_list else "indent"))
        elif name == "RE":
            if len(self.frames) == 1:
                raise Wrong(".RE without .RS")
            self.end_frame()
        elif name == "nf":
            self.end_paragraph()
            self.pre = []
        elif name == "fi":
            self.end_pre()
        elif name == "br":
            if self.frame.words and self.pre is None:
                self.frame.words[-1] += "<br>"
        else:
            raise Wrong(f"unknown macro .{name}")

    def line(self, line):
        if line.startswith('.\\"') or line.startswith('\'\\"'):
            return
        if line.startswith("."):
            name, _, rest = line[1:].strip().partition(" ")
            if name:
                self.macro(name, rest)
        elif not line.strip():
            if self.pre is None:
                self.end_list()
            else:
                self.pre.append("")
        else:
            self.put_text(show_text(line))


def show_plain(text):
    return re.sub(r"<[^>]*>", "", show_text(text))


def render_man(text, link):
    man = Man(link)
    for number, line in enumerate(text.splitlines(), 1):
        try:
            man.line(line)
        except Wrong as problem:
            raise Wrong(f"line {number}: {problem}") from None
    if man.pre is not None:
        raise Wrong(".nf without .fi")
    man.end_frames()
    name = html.unescape(re.sub(r"<[^>]*>", "", " ".join(man.name)))
    description = name.partition(" - ")[2]
    title = escape(man.title)
    return f"<h1>{title}</h1>\n" + "\n".join(man.frame.out), man.title, description
