#!/usr/bin/env python3
"""Tests of the site's manual pages (tools/site/man.py)."""

import os
import sys
import unittest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TREE, "tools", "site"))

from inline import Wrong  # noqa: E402
from man import render_man, show_text  # noqa: E402


def show(text, link=lambda name, section: None):
    body = render_man('.TH A\\-B 1 "" "x" "y"\n' + text, link)[0]
    return body.partition("</h1>\n")[2]


class Pages(unittest.TestCase):
    def test_title_and_description(self):
        body, title, description = render_man(
            ".TH HEDDLE\\-RUN 1 \"\" \"heddle\"\n.SH NAME\nheddle\\-run \\- run it, don't walk\n",
            lambda name, section: None)
        self.assertEqual(title, "heddle-run(1)")
        self.assertEqual(description, "run it, don't walk")
        self.assertIn("<h1>heddle-run(1)</h1>", body)
        self.assertIn('<h2 id="name">Name ', body)

    def test_fonts(self):
        self.assertEqual(show_text(r"a \fBb\fR \fIc\fP d"), "a <b>b</b> <i>c</i> d")
        self.assertEqual(show('.B one "two three"\n.BR four (1)\n.IR a " b " c\n.RB [ \\-x ]'),
                         "<p><b>one two three</b>\n<b>four</b>(1)\n<i>a</i> b <i>c</i>\n"
                         "[<b>-x</b>]</p>")

    def test_characters(self):
        self.assertEqual(show_text(r"\-\- a\|.\|.\|. \(dqb\(dq c\e \&.x"),
                         '-- a... &quot;b&quot; c\\ .x')

    def test_paragraphs(self):
        self.assertEqual(show("a\nb\n.PP\nc"), "<p>a\nb</p>\n<p>c</p>")

    def test_options_have_anchors(self):
        body = show('.TP\n.BI \\-\\-mem " SIZE"\nLimit.\n.TP\nword\nMeaning.\n.PP\nafter')
        self.assertIn('<dl>\n<dt id="--mem"><b>--mem</b><i> SIZE</i> ', body)
        self.assertIn("<dt>word</dt><dd>\n<p>Meaning.</p>\n</dd></dl>\n<p>after</p>", body)

    def test_lists_in_lists(self):
        body = show(".TP\na\nA.\n.RS\n.TP\nb\nB.\n.RE\n.TP\nc\nC.").replace("\n", "")
        self.assertEqual(body, '<dl><dt>a</dt><dd><p>A.</p><div class="inner"><dl><dt>b</dt><dd>'
                               '<p>B.</p></dd></dl></div></dd><dt>c</dt><dd><p>C.</p></dd></dl>')

    def test_examples_keep_their_lines(self):
        self.assertEqual(show(".PP\n.RS\n.nf\na  <b>\n\n$ c\n.fi\n.RE\nd"),
                         '<div class="indent">\n<pre><code>a  &lt;b&gt;\n\n$ c</code></pre>\n'
                         "</div>\n<p>d</p>")

    def test_other_pages_are_links(self):
        body = show(".BR heddle\\-run (1),\n.BR ls (1)",
                    lambda name, section: f"{name}.html" if name == "heddle-run" else None)
        self.assertIn('<a href="heddle-run.html"><b>heddle-run</b>(1)</a>,', body)
        self.assertIn("<b>ls</b>(1)", body)

    def test_comments_are_left_out(self):
        self.assertEqual(show('.\\" secret\na\n.\nb'), "<p>a\nb</p>")

    def test_html_is_text(self):
        body = show(".SH <script>\n.TP\n.B <img>\n<i>x</i> \\fB<b>\\fR\n.nf\n<script>\n.fi")
        for tag in ("<script>", "<img>", "<i>x"):
            self.assertNotIn(tag, body)

    def test_what_is_unknown_is_an_error(self):
        for text, message in ((".XX a", "line 2: unknown macro .XX"),
                              ("a\\zb", "line 2: unknown escape"), ("\\fXb", "unknown font"),
                              (".RE", ".RE without .RS"), (".nf\na", ".nf without .fi")):
            with self.assertRaises(Wrong) as caught:
                show(text)
            self.assertIn(message, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
