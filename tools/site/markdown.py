"""Markdown as HTML: what the documents of this tree use, and nothing that is not safe.

Headings, paragraphs, lists in lists, quotes, fenced and indented code, tables and rules, as GitHub
shows them. HTML in a document is shown as text. Reference links are an error, because they would
silently be text.

    render_page(text, resolve)      (HTML, title), where resolve is as in inline.py
    make_anchors()                  a function that gives headings the anchors GitHub gives them
"""

import re

import highlight
from inline import Wrong, escape, plain_text, render_inline

FENCE = re.compile(r"^( {0,3})(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
UNDERLINE = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
QUOTE = re.compile(r"^ {0,3}> ?")
ITEM = re.compile(r"^( {0,3})([-*+]|\d{1,9}[.)])( +|$)")
DELIMITERS = re.compile(r"^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:[ \t]")
# Lists in lists in quotes: a parser without a limit can be made to run out of stack.
MOST_DEPTH = 40


def make_anchors():
    """Anchors as GitHub makes them, which tools/check_links.py knows, too: one page each."""
    seen = {}

    def anchor_of(words):
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        return f"{anchor}-{count}" if count else anchor

    return anchor_of


def indent_of(line):
    return len(line) - len(line.lstrip(" "))


def starts_block(line):
    """Does this line end a paragraph that stands above it?"""
    item = ITEM.match(line)
    if item and item.group(3):
        marker = item.group(2)
        if not marker[0].isdigit() or marker[:-1] == "1":
            return True
    return bool(FENCE.match(line) or HEADING.match(line) or RULE.match(line) or QUOTE.match(line))


def split_cells(row):
    """The cells of a table's row. A | with a backslash before it is no border."""
    row = row.strip()
    row = row[1:] if row.startswith("|") else row
    cells = [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", row)]
    if cells and not cells[-1] and row.endswith("|"):
        cells.pop()
    return cells


class Page:
    def __init__(self, resolve):
        self.resolve = resolve
        self.anchor_of = make_anchors()
        self.title = ""

    def inline(self, text):
        return render_inline(text, self.resolve)

    def blocks(self, lines, depth=0, tight=False):
        """HTML of these lines. In a tight list, paragraphs have no tags."""
        if depth > MOST_DEPTH:
            raise Wrong(f"lists and quotes more than {MOST_DEPTH} deep")
        out, at = [], 0
        while at < len(lines):
            line = lines[at]
            if not line.strip():
                at += 1
            elif FENCE.match(line):
                at = self.put_fence(out, lines, at)
            elif HEADING.match(line):
                match = HEADING.match(line)
                self.put_heading(out, len(match.group(1)), match.group(2) or "")
                at += 1
            elif RULE.match(line):
                out.append("<hr>")
                at += 1
            elif QUOTE.match(line):
                at = self.put_quote(out, lines, at, depth)
            elif ITEM.match(line):
                at = self.put_list(out, lines, at, depth)
            elif indent_of(line) >= 4:
                at = self.put_indented(out, lines, at)
            elif self.is_table(lines, at):
                at = self.put_table(out, lines, at)
            else:
                at = self.put_paragraph(out, lines, at, tight)
        return "\n".join(out)

    def put_heading(self, out, level, text):
        words = plain_text(text)
        anchor = escape(self.anchor_of(words))
        if level == 1 and not self.title:
            self.title = words
        out.append(f'<h{level} id="{anchor}">{self.inline(text)} '
                   f'<a class="anchor" href="#{anchor}" aria-label="link to this heading">#</a>'
                   f'</h{level}>')

    def put_fence(self, out, lines, at):
        indent, fence, language = FENCE.match(lines[at]).groups()
        end = re.compile(r"^ {0,3}" + re.escape(fence[0]) + "{%d,}[ \t]*$" % len(fence))
        code, at = [], at + 1
        while at < len(lines) and not end.match(lines[at]):
            code.append(re.sub("^ {0,%d}" % len(indent), "", lines[at]))
            at += 1
        out.append(highlight.code_block("\n".join(code), language))
        return at + 1

    def put_indented(self, out, lines, at):
        code = []
        while at < len(lines) and (indent_of(lines[at]) >= 4 or not lines[at].strip()):
            code.append(lines[at][4:])
            at += 1
        out.append(highlight.code_block("\n".join(code).strip("\n"), ""))
        return at

    def put_quote(self, out, lines, at, depth):
        inner = []
        while at < len(lines):
            if QUOTE.match(lines[at]):
                inner.append(QUOTE.sub("", lines[at]))
            elif not lines[at].strip() or not inner[-1].strip() or starts_block(lines[at]):
                break
            else:  # a paragraph may go on without a mark
                inner.append(lines[at])
            at += 1
        out.append(f"<blockquote>\n{self.blocks(inner, depth + 1)}\n</blockquote>")
        return at

    def put_list(self, out, lines, at, depth):
        first = ITEM.match(lines[at]).group(2)
        ordered = first[0].isdigit()
        kind = first[-1]  # -, *, +, . or )
        items, loose, blank = [], False, False
        while at < len(lines):
            match = ITEM.match(lines[at])
            if not match or match.group(2)[-1] != kind or RULE.match(lines[at]):
                break
            loose = loose or (blank and bool(items))
            item, at, blank = self.read_item(lines, at, match)
            items.append(item)
            loose = loose or is_loose(item)
        tag = "ol" if ordered else "ul"
        begin = f' start="{int(first[:-1])}"' if ordered and int(first[:-1]) != 1 else ""
        shown = [f"<li>{self.blocks(item, depth + 1, not loose)}</li>" for item in items]
        out.append(f"<{tag}{begin}>\n" + "\n".join(shown) + f"\n</{tag}>")
        return at

    def read_item(self, lines, at, match):
        """The lines of a list's item without its indent, the place behind it, and whether it was
        followed by a blank line."""
        spaces = len(match.group(3))
        width = match.end() if 1 <= spaces <= 4 else match.end() - spaces + 1
        inner, at, blank = [lines[at][width:]], at + 1, False
        while at < len(lines):
            line = lines[at]
            if not line.strip():
                blank = True
                inner.append("")
            elif indent_of(line) >= width:
                blank = False
                inner.append(line[width:])
            elif blank or starts_block(line) or ITEM.match(line):
                break
            else:  # a paragraph may go on without an indent
                inner.append(line.lstrip())
            at += 1
        while inner and not inner[-1].strip():
            inner.pop()
        return inner, at, blank

    def is_table(self, lines, at):
        return ("|" in lines[at] and at + 1 < len(lines) and "|" in lines[at + 1]
                and bool(DELIMITERS.match(lines[at + 1]))
                and len(split_cells(lines[at])) == len(split_cells(lines[at + 1])))

    def put_table(self, out, lines, at):
        head, aligns = split_cells(lines[at]), []
        for cell in split_cells(lines[at + 1]):
            left, right = cell.startswith(":"), cell.endswith(":")
            aligns.append("center" if left and right else "right" if right else "")
        at += 2
        rows = []
        while at < len(lines) and lines[at].strip() and not starts_block(lines[at]):
            cells = split_cells(lines[at])[:len(head)]
            rows.append(cells + [""] * (len(head) - len(cells)))
            at += 1

        def show(cells, tag):
            shown = []
            for cell, align in zip(cells, aligns):
                style = f' class="{align}"' if align else ""
                shown.append(f"<{tag}{style}>{self.inline(cell)}</{tag}>")
            return "<tr>" + "".join(shown) + "</tr>"

        parts = ['<div class="table"><table>']
        if any(head):
            parts.append(f"<thead>{show(head, 'th')}</thead>")
        parts += ["<tbody>"] + [show(row, "td") for row in rows] + ["</tbody></table></div>"]
        out.append("\n".join(parts))
        return at

    def put_paragraph(self, out, lines, at, tight):
        if DEFINITION.match(lines[at]):
            raise Wrong(f"reference links are not understood: {lines[at].strip()}")
        words = [lines[at].lstrip()]
        at += 1
        while at < len(lines) and lines[at].strip():
            underline = UNDERLINE.match(lines[at])
            if underline:
                level = 1 if underline.group(1)[0] == "=" else 2
                self.put_heading(out, level, "\n".join(words))
                return at + 1
            if starts_block(lines[at]):
                break
            words.append(lines[at].lstrip())
            at += 1
        text = self.inline("\n".join(words).rstrip())
        out.append(text if tight else f"<p>{text}</p>")
        return at


def is_loose(item):
    """Do two blocks of this item have a blank line between them? Those in code do not count."""
    fence = None
    for number, line in enumerate(item):
        match = FENCE.match(line)
        if match and fence is None:
            fence = match.group(2)
        elif fence and line.strip().startswith(fence):
            fence = None
        elif fence is None and not line.strip() and number + 1 < len(item):
            after = item[number + 1]
            if after.strip() and indent_of(after) < 2 and not ITEM.match(after):
                return True
    return False


def render_page(text, resolve):
    page = Page(resolve)
    body = page.blocks(text.replace("\r\n", "\n").replace("\t", "    ").replace("\0", "\ufffd")
                       .split("\n"))
    return body, page.title
