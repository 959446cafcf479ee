"""The inside of Markdown's paragraphs: code, links, pictures, emphasis. HTML in them is text.

    render_inline(text, resolve)    HTML of one paragraph; resolve(url, is_picture) gives the
                                    address that a link gets, or raises Wrong
    plain_text(text)                the same without any marks
"""

import html
import re

PUNCTUATION = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
AUTOLINK = re.compile(r"<((?:https?|mailto):[^\s<>]*)>")
BARE_URL = re.compile(r"https?://[^\s<>()`\"\u3000-\u303f\uff00-\uffef]+")
ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
LINK_TITLE = re.compile(r"""\s+(?:"[^"]*"|'[^']*')\s*$""")
# Brackets in brackets in brackets: nobody writes more, and a parser that goes deeper can be hung.
MOST_DEPTH = 12


class Wrong(Exception):
    """A document says what cannot be shown: a link that leads nowhere, or marks we do not know."""


def escape(text):
    return html.escape(text, quote=True)


def pair_brackets(text):
    """{place of [ or (: place of the bracket that closes it}. Code and escapes count as nothing."""
    pairs, opened, at = {}, {"]": [], ")": []}, 0
    while at < len(text):
        c = text[at]
        if c == "\\":
            at += 1
        elif c == "`":
            at = skip_code(text, at) - 1
        elif c == "[":
            opened["]"].append(at)
        elif c == "(":
            opened[")"].append(at)
        elif c in opened and opened[c]:
            pairs[opened[c].pop()] = at
        at += 1
    return pairs


def skip_code(text, at):
    """The place behind the code that begins at `at`, or behind its backquotes if it has no end."""
    ticks = re.match(r"`+", text[at:]).group()
    end = re.compile(r"(?<!`)" + ticks + r"(?!`)").search(text, at + len(ticks))
    return end.end() if end else at + len(ticks)


def read_code(text, at):
    """(the code, the place behind it); code is None if the backquotes stand for themselves."""
    end = skip_code(text, at)
    ticks = len(re.match(r"`+", text[at:]).group())
    if end <= at + ticks:
        return None, end
    code = text[at + ticks:end - ticks].replace("\n", " ")
    if len(code) > 2 and code[0] == code[-1] == " " and code.strip():
        code = code[1:-1]
    return code, end


def read_target(text, at, pairs):
    """What stands in the round brackets behind a link's text: (url, place behind), or None."""
    if not text.startswith("(", at) or at not in pairs:
        return None
    end = pairs[at]
    url = LINK_TITLE.sub("", text[at + 1:end].strip())
    if url.startswith("<") and url.endswith(">"):
        url = url[1:-1]
    elif re.search(r"\s", url):
        return None
    return html.unescape(re.sub(r"\\([()\\])", r"\1", url)), end + 1


def is_wide(c):
    return "\u3000" <= c <= "\u9fff" or "\uff00" <= c <= "\uffef"


class Inline:
    """One paragraph on its way. Pieces are HTML, or a run of * or _ that may yet be emphasis:
    [character, how many are left, may open, may close]."""

    def __init__(self, text, resolve, depth=0):
        self.text, self.resolve, self.depth = text, resolve, depth
        self.pairs = pair_brackets(text)
        self.pieces = []
        self.plain = []

    def render(self):
        at = 0
        while at < len(self.text):
            at = self.step(at)
        self.flush()
        return join_emphasis(self.pieces)

    def flush(self):
        if self.plain:
            self.pieces.append(escape("".join(self.plain)))
            self.plain = []

    def put(self, piece):
        self.flush()
        self.pieces.append(piece)

    def step(self, at):
        """Reads what stands at `at`; gives the place behind it."""
        c = self.text[at]
        if c == "\\":
            return self.step_backslash(at)
        if c == "`":
            code, end = read_code(self.text, at)
            if code is None:
                self.plain.append(self.text[at:end])
            else:
                self.put(f"<code>{escape(code)}</code>")
            return end
        if c == "!" and self.text.startswith("![", at):
            return self.step_link(at, at + 2, True)
        if c == "[":
            return self.step_link(at, at + 1, False)
        if c in "*_":
            return self.step_emphasis(at)
        if c == "\n":
            return self.step_newline(at)
        return self.step_text(at)

    def step_text(self, at):
        c, match = self.text[at], None
        if c == "&":
            match = ENTITY.match(self.text, at)
            if match:
                self.plain.append(html.unescape(match.group()))
                return match.end()
        elif c == "<":
            match = AUTOLINK.match(self.text, at)
            if match:
                self.put_link(match.group(1), escape(match.group(1)))
                return match.end()
        elif c == "h" and not re.match(r"\w", self.text[at - 1:at]):
            match = BARE_URL.match(self.text, at)
            if match:
                url = match.group().rstrip(".,;:!?*_'")
                self.put_link(url, escape(url))
                return at + len(url)
        self.plain.append(c)
        return at + 1

    def step_backslash(self, at):
        after = self.text[at + 1:at + 2]
        if after == "\n":
            self.put("<br>\n")
        elif after in PUNCTUATION:
            self.plain.append(after)
        else:
            self.plain.append("\\")
            return at + 1
        return at + 2

    def step_newline(self, at):
        if is_wide(self.text[at - 1:at]) and is_wide(self.text[at + 1:at + 2]):
            return at + 1  # Chinese has no blanks between words, and a browser would show one
        if "".join(self.plain).endswith("  "):
            self.plain = ["".join(self.plain).rstrip()]
            self.put("<br>")
        self.plain.append("\n")
        return at + 1

    def step_link(self, at, start, is_picture):
        close = self.pairs.get(start - 1, -1)
        target = read_target(self.text, close + 1, self.pairs) if close >= 0 else None
        if target is None or self.depth >= MOST_DEPTH:
            self.plain.append(self.text[at:start])
            return start
        url, end = target
        words = self.text[start:close]
        if is_picture:
            self.put(f'<img src="{escape(self.resolve(url, True))}" '
                     f'alt="{escape(plain_text(words))}">')
        else:
            inner = Inline(words, self.resolve, self.depth + 1)
            self.put_link(url, inner.render())
        return end

    def put_link(self, url, words):
        self.put(f'<a href="{escape(self.resolve(url, False))}">{words}</a>')

    def step_emphasis(self, at):
        c = self.text[at]
        end = at
        while self.text[end:end + 1] == c:
            end += 1
        before, after = self.text[at - 1:at] if at else " ", self.text[end:end + 1] or " "
        # The rules of CommonMark: what may open has a word behind it, what may close has one
        # before it, and _ does neither inside of a word.
        left = not after.isspace() and (after not in PUNCTUATION or before.isspace() or
                                        before in PUNCTUATION)
        right = not before.isspace() and (before not in PUNCTUATION or after.isspace() or
                                          after in PUNCTUATION)
        if c == "_":
            left, right = (left and (not right or before in PUNCTUATION),
                           right and (not left or after in PUNCTUATION))
        self.put([c, end - at, left, right])
        return end


def join_emphasis(pieces):
    """HTML of the pieces: each run that may close is paired with the nearest one that opens."""
    out, open_runs, open_count = [], [], {"*": 0, "_": 0}  # open_runs: places in out

    def close_last():
        open_count[out[open_runs.pop()][0]] -= 1

    for piece in pieces:
        if isinstance(piece, str):
            out.append(piece)
            continue
        c, count, opens, closes = piece
        while closes and count and open_count[c]:
            while out[open_runs[-1]][0] != c:
                close_last()
            place = open_runs[-1]
            run = out[place]
            use = 2 if count >= 2 and run[1] >= 2 else 1
            tag = "strong" if use == 2 else "em"
            inner = "".join(show_piece(p) for p in out[place + 1:])
            del out[place + 1:]
            out.append(f"<{tag}>{inner}</{tag}>")
            run[1] -= use
            count -= use
            if run[1] == 0:
                close_last()
                del out[place]
        if count:
            out.append([c, count])
            if opens:
                open_runs.append(len(out) - 1)
                open_count[c] += 1
    return "".join(show_piece(p) for p in out)


def show_piece(piece):
    return piece if isinstance(piece, str) else piece[0] * piece[1]


def render_inline(text, resolve):
    return Inline(text, resolve).render()


def plain_text(text):
    """The words of a paragraph, as a heading or a picture's description has them."""
    return html.unescape(re.sub(r"<[^>]*>", "", render_inline(text, lambda url, picture: url)))
