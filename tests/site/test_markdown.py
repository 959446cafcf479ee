#!/usr/bin/env python3
"""Tests of the site's Markdown (tools/site/markdown.py, inline.py, highlight.py)."""

import os
import re
import sys
import unittest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TREE, "tools", "site"))
sys.path.insert(1, os.path.join(TREE, "tools"))

import check_links  # noqa: E402
from inline import Wrong, plain_text, render_inline  # noqa: E402
from markdown import make_anchors, render_page  # noqa: E402


def keep(url, is_picture):
    return url


def show(text):
    return render_page(text, keep)[0]


def show_line(text):
    return render_inline(text, keep)


class Blocks(unittest.TestCase):
    def test_paragraphs_end_at_blank_lines(self):
        self.assertEqual(show("one\ntwo\n\nthree"), "<p>one\ntwo</p>\n<p>three</p>")

    def test_headings_have_anchors_and_the_first_is_the_title(self):
        body, title = render_page("# The `wire`, again\n\n## A\n\n## A\n", keep)
        self.assertEqual(title, "The wire, again")
        self.assertEqual(re.findall(r'id="([^"]*)"', body), ["the-wire-again", "a", "a-1"])
        self.assertIn("<code>wire</code>", body)

    def test_anchors_are_those_that_the_lint_of_links_knows(self):
        text = ("# What it can't do: `a_b`, c/d\n## Über -- uns\n## [Linked](x.md) word\n"
                "## Twice\n## Twice\n## 中文 标题\n")
        body = show(text)
        self.assertEqual(re.findall(r'<h\d id="([^"]*)"', body),
                         list(check_links.headings(text)))

    def test_underlined_headings(self):
        body = show("Top\n===\n\nBelow\n---\n")
        self.assertIn('<h1 id="top">', body)
        self.assertIn('<h2 id="below">', body)

    def test_fences_keep_everything(self):
        body = show("```\n<b> & *x* [a](b)\n\n# no heading\n```\nafter")
        self.assertEqual(body, "<pre><code>&lt;b&gt; &amp; *x* [a](b)\n\n# no heading</code></pre>"
                               "\n<p>after</p>")

    def test_a_fence_without_an_end_goes_to_the_end(self):
        self.assertEqual(show("~~~\na\n```\nb"), "<pre><code>a\n```\nb</code></pre>")

    def test_indented_code(self):
        self.assertEqual(show("text\n\n    a < b\n\n      c\n\nmore"),
                         "<p>text</p>\n<pre><code>a &lt; b\n\n  c</code></pre>\n<p>more</p>")

    def test_console_blocks_show_what_is_typed(self):
        body = show("```console\n$ heddle run -- ./app  # now\nhost$ ls\n# not a comment <\n```")
        self.assertIn('<span class="p">$ </span><b>heddle run -- ./app  '
                      '<span class="c"># now</span></b>', body)
        self.assertIn('<span class="p">host$ </span>', body)
        self.assertNotIn("<\n", body)

    def test_tables(self):
        body = show("| a | b |\n| --- | --: |\n| `x\\|y` | 1 |\n| only |\n| 1 | 2 | 3 |\n\nafter")
        self.assertIn("<thead><tr><th>a</th><th class=\"right\">b</th></tr></thead>", body)
        self.assertIn('<tr><td><code>x|y</code></td><td class="right">1</td></tr>', body)
        self.assertIn('<tr><td>only</td><td class="right"></td></tr>', body)
        self.assertIn('<tr><td>1</td><td class="right">2</td></tr>', body)
        self.assertTrue(body.endswith("</div>\n<p>after</p>"))

    def test_a_table_without_a_head_has_none(self):
        body = show("| | |\n| --- | --- |\n| a | b |")
        self.assertNotIn("<thead>", body)
        self.assertIn("<td>a</td><td>b</td>", body)

    def test_a_line_with_a_bar_is_no_table(self):
        self.assertEqual(show("a | b\nc | d"), "<p>a | b\nc | d</p>")

    def test_lists_in_lists(self):
        body = show("- one\n- two\n  - inner\n    more\n  - last\n- three")
        self.assertEqual(body.replace("\n", ""),
                         "<ul><li>one</li><li>two<ul><li>innermore</li><li>last</li></ul></li>"
                         "<li>three</li></ul>")

    def test_a_list_with_blank_lines_has_paragraphs(self):
        self.assertEqual(show("- a\n\n- b").replace("\n", ""),
                         "<ul><li><p>a</p></li><li><p>b</p></li></ul>")

    def test_code_in_an_item(self):
        body = show("1. do\n\n   ```sh\n   ls\n\n   pwd\n   ```\n2. then")
        self.assertEqual(body.count("<li>"), 2)
        self.assertIn("<pre><code>ls\n\npwd</code></pre>", body)

    def test_an_ordered_list_keeps_its_first_number(self):
        self.assertIn('<ol start="3">', show("3. c\n4. d"))

    def test_another_marker_begins_another_list(self):
        self.assertEqual(show("- a\n* b").count("<ul>"), 2)

    def test_a_number_in_a_paragraph_begins_no_list(self):
        self.assertEqual(show("It was in\n1998. And so."), "<p>It was in\n1998. And so.</p>")

    def test_quotes(self):
        self.assertEqual(show("> a\nb\n> - c\n\nd").replace("\n", ""),
                         "<blockquote><p>ab</p><ul><li>c</li></ul></blockquote><p>d</p>")

    def test_rules(self):
        self.assertEqual(show("a\n\n---\n\n* * *\nb"), "<p>a</p>\n<hr>\n<hr>\n<p>b</p>")

    def test_reference_links_are_refused(self):
        with self.assertRaisesRegex(Wrong, "reference links"):
            show("see [a]\n\n[a]: b.md\n")

    def test_windows_lines_and_tabs(self):
        self.assertEqual(show("a\r\n\r\n\tcode\r\n"), "<p>a</p>\n<pre><code>code</code></pre>")


class InParagraphs(unittest.TestCase):
    def test_code(self):
        self.assertEqual(show_line("`a < b` ``x ` y`` ` alone"),
                         "<code>a &lt; b</code> <code>x ` y</code> ` alone")

    def test_escapes(self):
        self.assertEqual(show_line(r"\*a\* \`b\` \[c](d) C:\dir"), "*a* `b` [c](d) C:\\dir")

    def test_emphasis(self):
        self.assertEqual(show_line("**a** *b* __c__ _d_ ***e***"),
                         "<strong>a</strong> <em>b</em> <strong>c</strong> <em>d</em> "
                         "<em><strong>e</strong></em>")
        self.assertEqual(show_line("*a **b** c*"), "<em>a <strong>b</strong> c</em>")

    def test_what_is_no_emphasis(self):
        for text in ("a * b * c", "snake_case_name", "2*3*", "cuMem* and *"):
            self.assertEqual(show_line(text), text if text != "2*3*" else "2<em>3</em>")

    def test_links(self):
        self.assertEqual(show_line('[a `b`](c.md#d "title")'),
                         '<a href="c.md#d">a <code>b</code></a>')
        self.assertEqual(show_line("[a [b] c](d(e).md)"), '<a href="d(e).md">a [b] c</a>')
        self.assertEqual(show_line("[a] (b)"), "[a] (b)")

    def test_addresses(self):
        self.assertEqual(show_line("<https://a.example/b>, https://c.example/d."),
                         '<a href="https://a.example/b">https://a.example/b</a>, '
                         '<a href="https://c.example/d">https://c.example/d</a>.')

    def test_pictures(self):
        self.assertEqual(show_line('![what *it* "is"](a.svg)'),
                         '<img src="a.svg" alt="what it &quot;is&quot;">')

    def test_entities(self):
        self.assertEqual(show_line("&lt; &nosuch; &#65; AT&T"), "&lt; &amp;nosuch; A AT&amp;T")

    def test_breaks(self):
        self.assertEqual(show_line("a  \nb\\\nc"), "a<br>\nb<br>\nc")

    def test_chinese_lines_are_joined_without_a_blank(self):
        self.assertEqual(show_line("第一行，\n第二行\nGPU 在\n此"), "第一行，第二行\nGPU 在此")

    def test_plain_text(self):
        self.assertEqual(plain_text("the `a<b>` of [*x*](y.md) & z"), "the a<b> of x & z")


class Hostile(unittest.TestCase):
    def test_html_is_text(self):
        for text in ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!-- x -->",
                     "a <b onmouseover='x'>b</b>", "| <script> | b |\n| --- | --- |\n| <i> | c |",
                     "# <script>x</script>", "- <iframe src=x>", "> <style>", "`<script>`",
                     "[<script>](a.md)", '![" onload="x](a.svg)',
                     "```<script>\n</code><script>\n```",
                     "&lt;script&gt;"):
            body = show(text)
            allowed = re.sub(r"</?(?:p|h\d|ul|li|a|code|pre|table|thead|tbody|tr|th|td|div|"
                             r"blockquote)\b(?: (?:id|class|href|aria-label)=\"[^\"<>]*\")*>"
                             r"|<img src=\"[^\"<>]*\" alt=\"[^\"<>]*\">", "", body)
            self.assertNotIn("<", allowed, text)

    def test_attributes_cannot_be_left(self):
        self.assertEqual(show_line('[a](b"onclick="x)'), '<a href="b&quot;onclick=&quot;x">a</a>')

    def test_the_resolver_sees_every_address(self):
        def refuse(url, is_picture):
            raise Wrong(url)

        for text in ("[a](javascript:x)", "![a](http://x)", "<https://a.example>",
                     "https://a.example", "[a](&#106;avascript:x)"):
            with self.assertRaises(Wrong):
                render_inline(text, refuse)

    def test_depth_has_a_limit(self):
        with self.assertRaisesRegex(Wrong, "deep"):
            show("> " * 500 + "a")
        self.assertIn("[", show_line("[" * 500 + "a" + "](b)" * 500))

    def test_long_input_ends(self):
        for text in ("[" * 20000, "![" * 10000, "`" * 9999 + "a" + "`" * 9998, "*a_" * 10000,
                     "[a](" * 8000, "<" * 20000, "&" * 20000, "|" * 20000 + "\n" + "|-" * 9999):
            show(text)


class Anchors(unittest.TestCase):
    def test_pages_do_not_share_them(self):
        first, second = make_anchors(), make_anchors()
        self.assertEqual([first("A"), first("A"), second("A")], ["a", "a-1", "a"])


if __name__ == "__main__":
    unittest.main()
