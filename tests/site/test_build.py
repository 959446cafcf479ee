#!/usr/bin/env python3
"""Tests of the whole site (tools/site): pages, links, what the check of it finds."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(TREE, "tools", "site")
sys.path.insert(0, TOOL)

import build  # noqa: E402
import check  # noqa: E402
import contents  # noqa: E402
from inline import Wrong  # noqa: E402

FILES = {
    "CMakeLists.txt": "project(heddle VERSION 9.8.7 LANGUAGES C)\n",
    "README.md": "# heddle\n\nIt is. See [wire](docs/wire.md#ring), `man heddle-run`.\n\n"
                 "![layers](docs/pictures/layers.svg)\n",
    "docs/wire.md": "# The wire\n\n## Ring\n\nIn [ring.c](../src/ring.c), [back](../README.md).\n",
    "docs/new.md": "# A page that nobody listed\n",
    "docs/pictures/layers.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>\n',
    "docs/internals/README.md": "# Internals\n",
    "docs/adr/README.md": "# Decisions\n",
    "docs/man/heddle-run.1": ".TH HEDDLE\\-RUN 1\n.SH NAME\nheddle\\-run \\- runs\n",
    "src/ring.c": "/* <script> */\nint a;\n",
}
NAVIGATION = [("Use", [("Start", "\nREADME.md Overview\ndocs/wire.md\n"), ("More", "")])]


class Case(unittest.TestCase):
    def setUp(self):
        self.tree = tempfile.mkdtemp(dir=os.environ.get("HED_SCRATCH"))
        self.addCleanup(shutil.rmtree, self.tree)
        self.out = os.path.join(self.tree, "out")
        for name, text in FILES.items():
            self.put(name, text)
        before = contents.NAVIGATION
        contents.NAVIGATION = NAVIGATION
        self.addCleanup(setattr, contents, "NAVIGATION", before)

    def put(self, name, text):
        path = os.path.join(self.tree, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, name):
        with open(os.path.join(self.out, name), encoding="utf-8") as f:
            return f.read()

    def build(self):
        return build.build(self.tree, self.out)

    def refused(self, name, text):
        self.put(name, text)
        with self.assertRaises(Wrong) as caught:
            self.build()
        return str(caught.exception)


class Pages(Case):
    def test_all_are_there(self):
        self.assertEqual(self.build(), 7)
        for name in ("index.html", "docs/wire.html", "docs/new.html", "man/heddle-run.1.html",
                     "src/ring.c.html", "docs/pictures/layers.svg", "index.js", "site.css"):
            self.assertTrue(os.path.isfile(os.path.join(self.out, name)), name)

    def test_links_lead_to_pages(self):
        self.build()
        self.assertIn('href="docs/wire.html#ring"', self.read("index.html"))
        self.assertIn('<a href="man/heddle-run.1.html"><code>man heddle-run</code></a>',
                      self.read("index.html"))
        self.assertIn('href="../src/ring.c.html"', self.read("docs/wire.html"))
        self.assertIn('href="../index.html">back', self.read("docs/wire.html"))
        self.assertIn("&lt;script&gt;", self.read("src/ring.c.html"))

    def test_the_navigation_has_every_document(self):
        self.build()
        page = self.read("docs/wire.html")
        for words in ("Overview", "A page that nobody listed", "heddle-run(1)",
                      '<a href="wire.html" aria-current="page">The wire</a>', "9.8.7"):
            self.assertIn(words, page)

    def test_it_is_the_same_each_time(self):
        self.build()
        first = self.read("index.html") + self.read("index.js")
        self.build()
        self.assertEqual(first, self.read("index.html") + self.read("index.js"))

    def test_marks_of_the_template_in_a_document_are_text(self):
        self.put("docs/new.md", "# {{navigation}}\n\n{{nosuch}} \\1\n")
        self.build()
        self.assertIn("<h1 id=\"navigation\">{{navigation}}", self.read("docs/new.html"))


class Refused(Case):
    def test_links_that_lead_nowhere(self):
        self.assertIn("docs/new.md: gone.md leads nowhere",
                      self.refused("docs/new.md", "[a](gone.md)"))

    def test_anchors_that_are_not_there(self):
        self.assertIn("docs/new.html: wire.html#x: docs/wire.html has no such anchor",
                      self.refused("docs/new.md", "[a](wire.md#x)"))

    def test_links_out_of_the_tree(self):
        self.assertIn("out of the tree", self.refused("docs/new.md", "[a](../../etc/passwd)"))
        self.assertIn("out of the tree", self.refused("docs/new.md", "[a](/etc/passwd)"))

    def test_addresses_that_run_or_load(self):
        for text in ("[a](javascript:alert(1))", "[a](data:text/html,x)", "[a](file:///etc)",
                     "![a](https://elsewhere.example/a.png)", "![a](data:image/png;base64,x)"):
            self.assertIn("not allowed", self.refused("docs/new.md", text))

    def test_files_that_are_no_text(self):
        self.put("docs/blob.bin", "a\0b")
        self.assertIn("no text", self.refused("docs/new.md", "[a](blob.bin)"))
        self.put("docs/blob.bin", "a" * (build.MOST_BYTES + 1))
        self.assertIn("no text", self.refused("docs/new.md", "[a](blob.bin)"))

    def test_a_page_in_the_navigation_that_is_not_there(self):
        os.remove(os.path.join(self.tree, "docs/wire.md"))
        with self.assertRaisesRegex(Wrong, "there is no docs/wire.md"):
            self.build()

    def test_pictures_that_load_more(self):
        self.assertIn("layers.svg: has", self.refused(
            "docs/pictures/layers.svg", '<svg><image href="https://a.example/x.png"/></svg>'))
        self.assertIn("layers.svg: has <script", self.refused(
            "docs/pictures/layers.svg", "<svg><script>1</script></svg>"))

    def test_a_folder_of_something_else_is_left_alone(self):
        self.put("out/mine.txt", "precious")
        with self.assertRaisesRegex(Wrong, "not of a site"):
            self.build()
        self.assertEqual(self.read("mine.txt"), "precious")


class Check(Case):
    def problems(self, body):
        self.put("out/a.html", f'<!DOCTYPE html><a id="here" href="#here">x</a>{body}')
        return "\n".join(check.check_site(self.out))

    def test_a_good_page(self):
        self.assertEqual(self.problems('<a href="https://a.example/">b</a> <img src="a.html">'), "")

    def test_what_it_finds(self):
        for body, problem in (
                ('<a href="#gone">b</a>', "no such anchor"),
                ('<a href="gone.html">b</a>', "leads nowhere"),
                ('<a href="../a.html">b</a>', "out of the site"),
                ('<a href="//a.example/x">b</a>', "links to //a.example"),
                ('<a href="javascript:x">b</a>', "links to javascript:x"),
                ('<img src="https://a.example/x.png">', "which is elsewhere"),
                ('<script src="//a.example/x.js"></script>', "which is elsewhere"),
                ('<link rel="stylesheet" href="http://a.example/x.css">', "which is elsewhere"),
                ("<script>alert(1)</script>", "a script in the page"),
                ('<p onclick="x">', "a script in the attribute onclick"),
                ('<p id="here">', "two elements have the id here"),
                ("<iframe></iframe>", "an element iframe"),
                ("<style>p { }</style>", "an element style")):
            self.assertIn(problem, self.problems(body), body)

    def test_style_sheets(self):
        self.put("out/a.css", "@import 'https://a.example/x.css';")
        self.assertIn("a.css: has @import", self.problems(""))
        self.put("out/a.css", "p { background: url(https://a.example/x.png) }")
        self.assertIn("a.css: has url(", self.problems(""))


class Command(Case):
    def test_a_failure_leaves_the_last_site_alone(self):
        shutil.copytree(TOOL, os.path.join(self.tree, "tools", "site"))
        self.put("tools/site/contents.py", f"NAVIGATION = {NAVIGATION!r}\n"
                 "WHOLE = ('docs/*.md', 'docs/man/*.[1-9]')\nWEIGHT = {}\nPAGE_WEIGHT = {}\n")
        command = [sys.executable, "-B", os.path.join(self.tree, "tools", "site"),
                   "--out", self.out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("5 pages", done.stdout)
        self.put("docs/new.md", "[a](gone.md)")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "site: docs/new.md: gone.md leads nowhere\n")
        self.assertIn("A page that nobody listed", self.read("docs/new.html"))
        self.assertFalse(os.path.exists(self.out + ".new"))


@unittest.skipUnless(shutil.which("chromium"), "no Chromium")
class InBrowser(Case):
    def test_the_search_works_from_files(self):
        self.build()
        page = f"file://{self.out}/docs/wire.html?search=runs"
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu",
             f"--user-data-dir={self.tree}/profile", "--virtual-time-budget=10000", "--dump-dom",
             page], capture_output=True, text=True, check=True, timeout=500)
        results = done.stdout.partition('id="results"')[2].partition("</div>")[0]
        self.assertIn('href="../man/heddle-run.1.html#name"', results)
        self.assertIn("<mark>runs</mark>", results)


if __name__ == "__main__":
    unittest.main()
