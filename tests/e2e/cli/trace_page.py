#!/usr/bin/env python3
"""`heddle trace export --html` and `--folded`: what is in the files, and what Chromium makes of a
page, if it is installed.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch trace_page.py [Case.test...]
"""

import base64
import html.parser
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.patience import PATIENCE  # noqa: E402
from harness.trace_file import (  # noqa: E402
    BEGIN, FINISH, MARK, begin, call, gpu_sample, kernel, launch, linked, record, sample, u32)
from trace_case import Case  # noqa: E402

T = 1_000_000_000
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = ["</script><script>document.title='owned'</script>", "<img src=x onerror=\"owned()\">",
           "<!--<script>", "]]>\u2028'\"\\", "\x1b[2J\x9b\u202e", "&lt;b&gt;"]


class Reader(html.parser.HTMLParser):
    """The texts of the page's scripts by id, all tags, and what they would load."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.tags, self.loads, self.now = {}, [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [value for key, value in attrs if key in ("src", "href")]
        self.now = dict(attrs).get("id", "code") if tag == "script" else None

    def handle_endtag(self, tag):
        self.now = None

    def handle_data(self, data):
        if self.now:
            self.scripts[self.now] = self.scripts.get(self.now, "") + data


class PageCase(Case):
    def page(self, data, *words, **more):
        path = self.write(data)
        self.run_it("export", "--html", path, *words, **more)
        return path + ".html"

    def read(self, page):
        """(facts, events): an event is {row, start, duration, name, note, link}."""
        reader = Reader(Path(page).read_text())
        self.assertEqual(reader.loads, [])
        self.assertEqual(reader.tags.count("script"), 3)
        self.assertNotIn("<", reader.scripts["facts"])
        facts = json.loads(reader.scripts["facts"])
        data = base64.b64decode(reader.scripts["events"], validate=False)
        n = facts["count"]
        self.assertEqual(len(data), 28 * n)
        columns = [struct.unpack_from(f"<{n}{kind}", data, at * n)
                   for kind, at in (("d", 0), ("d", 8), ("I", 16), ("I", 20), ("I", 24))]
        rows = [(track["group"], track["name"], lane) for track in facts["tracks"]
                for lane, count in enumerate(track["rows"]) for _ in range(count)]
        self.assertEqual(len(rows), n)
        events = [dict(row=row, start=start, duration=length, name=facts["names"][name],
                       kind=facts["kinds"][name], note=facts["notes"][note], link=link)
                  for row, start, length, name, note, link in zip(rows, *columns)]
        for a, b in zip(events, events[1:]):
            if a["row"] == b["row"]:
                self.assertLessEqual(a["start"] + a["duration"], b["start"])
        return facts, events


class Page(PageCase):
    def test_events_rows_and_links(self):
        facts, events = self.read(self.page(gpu_sample().data))
        by_name = {}
        for e in events:
            by_name.setdefault(e["name"], []).append(e)
        saxpy = by_name["saxpy"][0]
        self.assertEqual((saxpy["row"], saxpy["start"], saxpy["duration"], saxpy["note"]),
                         (("GPU 0", "stream 13", 0), 70000, 30000,
                          "grid 256x1x1 block 128x1x1 registers 16"))
        causes = [e for e in by_name["cuLaunchKernelEx"] if e["link"] == saxpy["link"]]
        self.assertEqual([e["start"] for e in causes], [61000])
        self.assertEqual(by_name["copy host to device"][0]["note"], "1048576 bytes")
        # Kernels that ran at once have different rows; calls lie in their range.
        self.assertEqual({e["row"][2] for n in ('odd "name"\n', "reduce") for e in by_name[n]},
                         {0, 1})
        self.assertEqual((by_name["step"][0]["row"][2], by_name["step"][0]["duration"]), (0, 16000))
        self.assertEqual([e["row"][2] for e in by_name["cuLaunchKernelEx"]], [0, 1, 1, 1])
        self.assertEqual(by_name["cuLaunchKernelEx"][1]["note"], "")
        self.assertIn("!CUDA_ERROR_INVALID_VALUE", [e["note"] for e in events])

    def test_tables_are_those_of_the_summary(self):
        page = self.page(gpu_sample().data)
        facts, _ = self.read(page)
        self.assertEqual(facts["summary"],
                         json.loads(self.run_it("summary", "--json", page[:-5])[0]))

    def test_open_ranges_last_to_the_end(self):
        _, events = self.read(self.page(sample().data))
        never = next(e for e in events if e["name"] == "never ended")
        self.assertEqual(never["start"] + never["duration"], 220700)
        self.assertIn("records dropped", [e["name"] for e in events])

    def test_a_part(self):
        path = self.write(gpu_sample().data)
        self.run_it("export", "--html", path, "--from", "0.00006", "--to", "0.00007")
        _, events = self.read(path + ".html")
        self.assertEqual(sorted({e["name"] for e in events}), ["cuLaunchKernelEx", "step"])
        self.run_it("export", "--folded", path, "--from", "1", code=2)

    def test_too_much_at_once_is_left_out(self):
        f = begin()
        f.records(1, [kernel(f"k{i}", T + i, 10000) for i in range(100)])
        f.end()
        facts, events = self.read(self.page(f.data))
        self.assertEqual((len(events), facts["left_out"]), (64, 36))

    def test_hostile_names_stay_in_their_texts(self):
        facts, events = self.read(self.page(hostile().data))
        names = {e["name"] for e in events}
        self.assertTrue(set(HOSTILE) <= names | {"cuInit"}, names)
        text = Path(self.path("a.trace.html")).read_text()
        self.assertFalse(set(text) & set("\x1b\x9b\u202e\u2028"))

    def test_damage_and_a_full_disk(self):
        data = bytearray(gpu_sample().data)
        data[-200] ^= 1
        path = self.write(bytes(data))
        _, err = self.run_it("export", "--html", path, code=1)
        self.assertIn("damaged", err)
        facts, _ = self.read(path + ".html")
        self.assertGreater(facts["summary"]["files"][0]["blocks_lost"], 0)
        path = self.write(gpu_sample().data)
        for words in ("--html", "--chrome", "--folded"):
            _, err = self.run_it("export", words, path, "-o", "/dev/full", code=1)
            self.assertIn("No space left on device", err)
        self.run_it("export", "--html", self.write(b"no trace", "b"), code=1)
        self.assertFalse(os.path.exists(self.path("b.html")))
        self.run_it("export", "--html", "--chrome", path, code=2)

    def test_nothing_is_left_behind(self):
        path = self.write(gpu_sample().data)
        os.mkdir(self.path("folder"))
        self.run_it("export", "--html", path, "-o", self.path("folder"), code=1)
        self.run_it("export", "--html", path, "-o", self.path("none/x.html"), code=1)
        self.assertEqual(sorted(os.listdir(self.dir)), ["a.trace", "folder"])


def hostile():
    f = begin(chain="trace>cpu")
    records = [linked(launch(T + 10 * i, 5, 0), i + 1) for i in range(len(HOSTILE))]
    records += [record(BEGIN, T + 200, body=HOSTILE[0].encode()), record(FINISH, T + 210),
                record(MARK, T + 220, body=HOSTILE[1].encode()), call(3, T + 230, 5, u32(0))]
    f.records(1, records)
    f.records(2, [kernel(name, T + 1000 * i, 900, i + 1) for i, name in enumerate(HOSTILE)])
    f.end()
    return f


class Folded(Case):
    def folded(self, data):
        out, _ = self.run_it("export", "--folded", self.write(data), "-o", "-")
        return dict(line.rsplit(" ", 1) for line in out.splitlines())

    def test_stacks(self):
        self.assertEqual(self.folded(gpu_sample().data), {
            "4242 main;cuMemcpyHtoD_v2;copy host to device": "25000",
            "4242 main;step;cuLaunchKernelEx;saxpy": "50000",
            "4242 main;step;cuLaunchKernelEx;reduce": "25000",
            r'4242 main;step;cuLaunchKernelEx;odd \"name\"\n': "20000",
            "4242 main;step;cuLaunchKernelEx;fill": "1000",
            "(unknown call);copy device to peer": "1000",
            "(unknown call);barrier": "1000",
            "(unknown call);something newer": "1000"})

    def test_names_end_no_frame_and_no_line(self):
        f = begin()
        f.records(1, [record(BEGIN, T, body=b"a;b\nc 1"), linked(launch(T + 1, 5, 0), 1)])
        f.records(2, [kernel("k;x\n\x1b y", T + 10, 5, 1)])
        f.end()
        self.assertEqual(self.folded(f.data),
                         {r"1;a,b\nc 1;cuLaunchKernelEx;k,x\n\u001b y": "5"})


@unittest.skipUnless(CHROMIUM, "there is no Chromium")
class Browser(PageCase):
    def dom(self, page, address="", script=""):
        """The page as it is when its scripts have run, and one more."""
        text = Path(page).read_text().replace("</body>", f"<script>{script}</script></body>")
        copy = self.write(text.encode(), "copy.html")
        p = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,800",
             "--user-data-dir=" + self.path("profile"), "--dump-dom", f"file://{copy}#{address}"],
            capture_output=True, text=True, timeout=PATIENCE)
        self.assertIn('data-ready="', p.stdout, p.stderr)
        return p.stdout

    def test_the_page_shows_its_tables(self):
        page = self.page(gpu_sample().data)
        dom = self.dom(page)
        self.assertIn("<title>./saxpy 1024 - heddle trace</title>", dom)
        for tab in ("Kernels", "Streams", "Ranges", "Copies", "Idle", "Calls"):
            self.assertIn(f">{tab}</button>", dom)
        self.assertIn(">saxpy</button>", dom)
        self.assertIn("GPU 0 stream 13", self.dom(page, "tab=Streams"))
        self.assertIn("2 events", self.dom(page, "find=SAXPY"))
        self.assertIn("streams of GPUs busy for 48.0 us",
                      self.dom(page, "select=0.00007,0.000101"))

    def test_keys(self):
        """Finds a kernel with the keyboard alone, and the call that has caused it."""
        keys = """
            const press = (node, key) => node.dispatchEvent(
                new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
            const view = document.getElementById('view'), query = document.getElementById('query');
            press(view, '/');
            document.body.dataset.focus = document.activeElement.id;
            query.value = 'reduce';
            query.dispatchEvent(new Event('input'));
            press(query, 'Enter');
            document.body.dataset.first = document.getElementById('panel').textContent;
            press(view, 'p'); press(view, 'Escape'); press(view, 'ArrowUp'); press(view, '+');
            press(view, 'ArrowLeft'); press(view, '0');
            document.body.dataset.last = document.getElementById('panel').textContent;
            """
        dom = self.dom(self.page(gpu_sample().data), script=keys)
        self.assertIn('data-focus="query"', dom)
        first = dom.split('data-first="')[1].split('"')[0]
        self.assertIn("Namereduce", first)
        self.assertIn("Caused bycuLaunchKernelEx", first)
        self.assertNotIn("Namereduce", dom.split('data-last="')[1].split('" data')[0])

    def test_names_do_nothing(self):
        for tab in ("Kernels", "Ranges", "Calls", "Selection"):
            dom = self.dom(self.page(hostile().data), f"tab={tab}&select=0,1")
            self.assertIn("<title>./saxpy 1024 - heddle trace</title>", dom)
            self.assertNotIn("<img", dom)

    def test_an_empty_trace(self):
        f = begin()
        f.end()
        self.assertIn("0 events", self.dom(self.page(f.data)))


if __name__ == "__main__":
    unittest.main()
