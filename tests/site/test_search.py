#!/usr/bin/env python3
"""Tests of the site's search: what is in the index, and what search.js finds in it. node runs the
script, or Chromium without a window; without both, only the index is tested."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(TREE, "tools", "site")
sys.path.insert(0, TOOL)

import search  # noqa: E402

BODY = ('<h1 id="t">The title <a class="anchor" href="#t">#</a></h1><p>Intro</p>'
        '<h2 id="a">First <code>x</code> <a class="anchor" href="#a">#</a></h2>'
        "<p>one</p><p>two &lt;b&gt;</p><table><tr><td>l</td><td>r</td></tr></table>"
        '<dl><dt id="--mem">--mem SIZE</dt><dd><p>Limits memory.</p></dd></dl>')

# (url, title, group, weight, body)
PAGES = [
    ("index.html", "heddle", "Start", 1,
     '<h1 id="heddle">heddle</h1><p>A driver. Memory, too.</p>'),
    ("sharing.html", "Sharing a GPU", "Guides", 1,
     '<h1 id="sharing-a-gpu">Sharing a GPU</h1><p>Programs share memory and time.</p>'
     '<h2 id="memory-limits">Memory limits</h2><p>A limit of memory is set by --mem.</p>'
     '<h2 id="policies">Policies</h2><p>By share, in time slices of 5 ms.</p>'),
    ("man/heddle-run.1.html", "heddle-run(1)", "Commands", 1,
     '<h1>heddle-run(1)</h1><dl><dt id="--mem">--mem SIZE</dt><dd>Limits the memory.</dd>'
     '<dt id="--gpu">--gpu WHERE</dt><dd>Where cuMemAlloc_v2 and other work runs.</dd></dl>'),
    ("adr.html", "A quota layer", "Decisions", .5,
     '<h1 id="a-quota-layer">A quota layer</h1><h2 id="memory-limits">Memory limits</h2>'
     "<p>A limit of memory, memory, memory.</p>"),
    ("zh.html", "中文", "Start", 1, '<h1 id="zh">中文</h1><p>没有 GPU 的机器上运行测试</p>'),
    ("file.html", "src/quota.c", "Files", .5, ""),
]


class Index(unittest.TestCase):
    def test_sections(self):
        self.assertEqual(search.split_sections(BODY), [
            ["t", "The title", "Intro"], ["a", "First x", "one two <b> l r"],
            ["--mem", "--mem SIZE", "Limits memory."]])

    def test_the_script(self):
        script = search.make_index(PAGES)
        match = re.fullmatch(r"heddleSearch\.take\((.*)\);\n", script, re.DOTALL)
        data = json.loads(match.group(1))
        self.assertEqual(data["pages"][1], ["sharing.html", "Sharing a GPU", "Guides", 1])
        self.assertIn([5, "", "src/quota.c", ""], data["sections"])

    def test_a_document_cannot_end_the_script(self):
        script = search.make_index([("a.html", "</script>\u2028", "x", 1, "")])
        self.assertNotIn("\u2028", script)


@functools.lru_cache
def find_engine():
    """("node", path), ("chromium", path) or None."""
    node = shutil.which("node")
    if node:
        return "node", node
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return "chromium", shutil.which(name)
    return None


def run_in_chromium(program, script):
    with tempfile.TemporaryDirectory(dir=os.environ.get("HED_SCRATCH")) as folder:
        page = os.path.join(folder, "page.html")
        with open(page, "w", encoding="utf-8") as f:
            f.write('<!DOCTYPE html><meta charset="utf-8"><pre id="out"></pre><script>'
                    f"const print = t => document.getElementById('out').textContent = t;{script}"
                    "</script>")
        out = subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu",
                              f"--user-data-dir={folder}/profile", "--dump-dom", page],
                             capture_output=True, text=True, check=True, timeout=500).stdout
    match = re.search(r'<pre id="out">(.*?)</pre>', out, re.DOTALL)
    return re.sub(r"&(amp|lt|gt);", lambda m: {"amp": "&", "lt": "<", "gt": ">"}[m.group(1)],
                  match.group(1))


def run_script(expressions):
    """The values of JavaScript expressions, after search.js and the index were read."""
    with open(os.path.join(TOOL, "search.js"), encoding="utf-8") as f:
        script = f.read()
    values = ",".join(expressions)
    script = f"{script}\n{search.make_index(PAGES)}\nprint(JSON.stringify([{values}]));"
    kind, program = find_engine()
    if kind == "chromium":
        return json.loads(run_in_chromium(program, script))
    done = subprocess.run([program, "-"], input=f"const print = console.log;{script}", text=True,
                          capture_output=True, check=True, timeout=500)
    return json.loads(done.stdout)


def places(*queries):
    """The pages and anchors that each query finds, best first."""
    found = run_script([f"heddleSearch.rank({json.dumps(q)})" for q in queries])
    return [[f"{r['page']['url']}#{r['anchor']}" for r in results] for results in found]


@unittest.skipIf(find_engine() is None, "neither node nor Chromium")
class Ranking(unittest.TestCase):
    def test_a_heading_comes_before_text(self):
        (found,) = places("memory limits")
        self.assertEqual(found[0], "sharing.html#memory-limits")
        self.assertIn("adr.html#memory-limits", found)

    def test_an_option_is_found_as_it_is_typed(self):
        found, more = places("--mem", "mem size")
        self.assertEqual(found[0], "man/heddle-run.1.html#--mem")
        self.assertEqual(more[0], "man/heddle-run.1.html#--mem")

    def test_a_page_is_found_by_its_name(self):
        found, man, file = places("sharing", "heddle-run", "quota.c")
        self.assertEqual(found[0], "sharing.html#sharing-a-gpu")
        self.assertTrue(man[0].startswith("man/heddle-run.1.html"))
        self.assertEqual(file[0], "file.html#")

    def test_parts_of_words_and_capitals(self):
        found, capitals = places("cumemall", "POLICIES")
        self.assertEqual(found, ["man/heddle-run.1.html#--gpu"])
        self.assertEqual(capitals[0], "sharing.html#policies")

    def test_all_words_are_wanted_if_there_are_any_such(self):
        both, one, none = places("time slices", "slices nosuchword", "nosuchword")
        self.assertEqual(both, ["sharing.html#policies"])
        self.assertEqual(one, ["sharing.html#policies"])
        self.assertEqual(none, [])

    def test_other_scripts(self):
        self.assertEqual(places("运行测试"), [["zh.html#zh"]])

    def test_strange_queries(self):
        self.assertEqual(places("", "   ", "(.*", "\\", "İ")[:2], [[], []])

    def test_snippets_mark_the_words(self):
        (parts, none) = run_script([
            "heddleSearch.snippet(heddleSearch.rank('slices')[0], 20)",
            "heddleSearch.snippet(heddleSearch.rank('quota.c')[0], 20)"])
        self.assertIn(["slices", True], parts)
        self.assertEqual("".join(t for t, _ in parts).count("slices"), 1)
        self.assertEqual(none, [])


if __name__ == "__main__":
    unittest.main()
