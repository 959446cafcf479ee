#!/usr/bin/env python3
"""`heddle cpu cache`: what is in the cache, what is removed, and what is carried to other machines.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch tests/e2e/cpu/cache.py [CASE...]
"""

import json
import os
from pathlib import Path
import shutil
import struct
import subprocess
import unittest
import zlib

from after import HEDDLE, Case, PATIENCE, until


class Cache(Case):
    NAMES = ("a", "b", "c")

    def cache_command(self, *words, code=0, says=None, **env):
        p = subprocess.run([HEDDLE, "cpu", "cache", *map(str, words)], capture_output=True,
                           text=True, timeout=PATIENCE, env=self.environment(HEDDLE_LOG="", **env))
        self.assertEqual(p.returncode, code, f"{words}\n{p.stdout}\n{p.stderr}")
        if says is not None:
            self.assertIn(says, p.stderr)
        return p.stdout

    def rows(self):
        return [json.loads(line) for line in self.cache_command("list", "--json").splitlines()]

    def fill(self):
        """Has all kernels compiled, before their first launch."""
        self.path = self.write(20, *self.NAMES)
        p = self.start(self.path, *self.NAMES, HEDDLE_CPU_CODEGEN="warp")
        self.wait_for(p, *(f"kernel {n} compiled in" for n in self.NAMES))
        self.end(p)

    def empty(self):
        shutil.rmtree(self.cache)

    def test_the_list_says_what_there_is(self):
        self.assertEqual(self.rows(), [])
        self.assertIn("0 kernels", self.cache_command("list"))
        self.fill()
        rows = self.rows()
        self.assertEqual(sorted(r["kernel"] for r in rows), list(self.NAMES))
        for r in rows:
            self.assertEqual(r["state"], "ok")
            self.assertGreater(r["bytes"], 0)
            self.assertGreater(r["compile_us"], 0)
        table = self.cache_command("list")
        self.assertIn("KERNEL", table)
        self.assertIn("3 kernels", table)
        self.assertIn(self.cache, table)

    def test_damaged_and_foreign_files_are_stale(self):
        self.fill()
        one, two, _ = self.entries()
        os.truncate(one, 1000)
        os.chmod(two, 0o666)
        self.assertEqual(sorted(r["state"] for r in self.rows()), ["damaged", "not trusted", "ok"])
        self.assertIn("removed 2 of 3", self.cache_command("prune", "--stale"))
        self.assertEqual(len(self.rows()), 1)

    def test_another_processor_needs_other_kernels(self):
        self.fill()
        archive = os.path.join(self.dir, "kernels.archive")
        entry = Path(self.entries()[0])
        features = next(r["features"] for r in self.rows()).encode()
        data = entry.read_bytes().replace(features, b"-" + features[1:])
        # Its checksum is at 56, and covers what follows the head (kernel/cache/entry.c).
        entry.write_bytes(data[:56] + struct.pack("<I", zlib.crc32(data[104:])) + data[60:])
        states = ["ok", "ok", "other processor"]
        self.assertEqual(sorted(r["state"] for r in self.rows()), states)
        self.assertIn("exported 2", self.cache_command("export", archive, says="1 kernel was left"))
        self.assertIn("exported 3", self.cache_command("export", archive, "--all"))
        self.empty()
        self.assertIn("imported 2", self.cache_command("import", archive,
                                                       says="because of: other processor"))
        self.assertEqual(len(self.rows()), 2)
        self.assertIn("imported 3", self.cache_command("import", archive, "--all"))
        self.assertEqual(sorted(r["state"] for r in self.rows()), states)

    def test_old_and_excess_kernels_are_removed(self):
        self.fill()
        old = self.entries()[0]
        os.utime(old, (1, 1))
        self.assertIn("removed 1 of 3", self.cache_command("prune", "--older", 30))
        self.assertFalse(os.path.exists(old))
        size = max(map(os.path.getsize, self.entries()))
        self.assertIn("removed 1 of 2", self.cache_command("prune", "--size", size))
        self.assertIn("removed 1 of 1", self.cache_command("prune", "--all"))
        self.assertEqual(self.rows(), [])
        self.cache_command("prune", code=2, says="give --stale")

    def test_an_exported_cache_is_used_where_it_is_imported(self):
        archive = os.path.join(self.dir, "kernels.archive")
        self.fill()
        self.assertIn("exported 3 kernels", self.cache_command("export", archive))
        self.empty()
        self.assertIn("imported 3 kernels", self.cache_command("import", archive))
        p = self.start(self.path, *self.NAMES, HEDDLE_CPU_CODEGEN="warp")
        self.wait_for(p, *(f"kernel {n} found in the cache" for n in self.NAMES))
        self.end(p)
        self.assertEqual(self.compiled(p), [])

    def test_what_is_of_no_use_here_is_left_out(self):
        archive = os.path.join(self.dir, "kernels.archive")
        self.fill()
        os.truncate(self.entries()[0], 1000)
        self.assertIn("exported 2 kernels", self.cache_command("export", archive))

    def test_an_archive_replaces_only_a_file(self):
        pipe, none = os.path.join(self.dir, "pipe"), os.path.join(self.dir, "none")
        kept = os.path.join(self.dir, "kernels.archive")
        self.fill()
        os.mkfifo(pipe)
        self.cache_command("export", pipe, code=1, says="no ordinary file")
        self.assertTrue(os.path.exists(pipe))
        self.cache_command("export", os.path.join(none, "x"), code=1, says="No such file")
        Path(kept).write_bytes(b"an older one")
        self.cache_command("export", kept)
        self.assertGreater(os.path.getsize(kept), 100)
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith("kernels.archive.")], [])

    def test_a_cache_that_is_not_there_is_empty(self):
        archive = os.path.join(self.dir, "kernels.archive")
        self.assertFalse(os.path.exists(self.cache))
        self.assertIn("exported 0 kernels", self.cache_command("export", archive))
        self.assertIn("imported 0 kernels", self.cache_command("import", archive))

    def test_a_cache_that_cannot_be_read_is_not_empty(self):
        os.symlink(self.cache, self.cache)
        for words in (("list",), ("prune", "--all"), ("export", os.path.join(self.dir, "x"))):
            self.cache_command(*words, code=1, says="cpu cache")

    def test_who_has_no_cache_is_told_once(self):
        path = self.write(20, *self.NAMES)
        Path(self.cache).write_text("no folder")
        p = self.start(path, *self.NAMES, HEDDLE_CPU_CODEGEN="warp")
        self.wait_for(p, *(f"kernel {n} compiled in" for n in self.NAMES))
        self.end(p)
        self.assertEqual(self.log(p).count("warn cpu: compiled kernels cannot be kept in"), 1,
                         self.log(p))
        self.assertIn("Not a directory", self.log(p))

    def test_files_of_others_are_left_alone(self):
        self.fill()
        cache = os.path.dirname(self.entries()[0])
        for name in ("linux.kernel.config", "my.kernel"):
            Path(cache, name).write_bytes(b"x")
            os.utime(Path(cache, name), (0, 0))
        self.assertEqual(len(self.rows()), 3)
        self.cache_command("prune", "--all")
        self.assertEqual(sorted(n for n in os.listdir(cache) if "kernel" in n),
                         ["linux.kernel.config", "my.kernel"])

    def test_damaged_archives_are_refused(self):
        archive = os.path.join(self.dir, "kernels.archive")
        self.fill()
        self.cache_command("export", archive)
        self.empty()
        whole = Path(archive).read_bytes()
        middle = len(whole) // 2
        for damaged, says in (
                (b"", "no archive"), (b"x" * 100, "no archive"), (whole[:-1], "too early"),
                (whole[:middle], "too early"), (whole + b"x", "malformed"),
                (whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:], "malformed"),
                (whole[:8] + b"\x09" + whole[9:], "version 9"),
                (whole[:12] + b"\xff" * 8 + whole[20:], "over a limit")):
            Path(archive).write_bytes(damaged)
            self.cache_command("import", archive, code=1, says=says)
            # Nothing was stored, although what comes before the damage is right.
            self.assertEqual(self.rows(), [])
        self.cache_command("import", "/dev/zero", code=1, says="no ordinary file")
        self.cache_command("import", os.path.join(self.dir, "none"), code=1, says="No such file")

    def test_wrong_words_are_named(self):
        self.cache_command(code=2, says="list, prune, export or import")
        self.cache_command("lst", code=2, says="'lst' is neither")
        self.cache_command("export", code=2, says="no file")
        self.cache_command("list", "x", code=2, says="unexpected 'x'")
        self.cache_command("list", "--all", code=2, says="another of these")
        self.cache_command("prune", "--size", "x", code=2, says="is not a size")
        self.cache_command("prune", "--older", "0", code=2, says="days")
        self.cache_command("list", code=1, says="there is no cache", HEDDLE_CACHE_SIZE="0")

    def test_what_is_compiled_after_the_end_is_shown(self):
        path = self.write(4000, *self.NAMES)
        p = self.start(path, *self.NAMES)
        self.wait_for(p, *(f"kernel {n} is hot" for n in self.NAMES))
        self.end(p)
        line = until(lambda: next((x for x in self.cache_command("list").splitlines()
                                   if "which has ended" in x), None), "a line")
        self.assertIn(f"(process {p.pid})", line)
        helper = int(line.split()[1])
        self.assertIn(helper, self.helpers(p))
        os.kill(helper, 15)
        until(lambda: not self.helpers(p), "its end")

    def test_it_is_shown_while_the_first_compiler_works(self):
        path = self.write(30000, *self.NAMES)
        p = self.start(path, *self.NAMES)
        self.wait_for(p, *(f"kernel {n} is hot" for n in self.NAMES))
        self.end(p)
        listed = until(lambda: (lambda x: x if "which has ended" in x else None)(
            self.cache_command("list")), "a line")
        self.assertIn("0 kernels", listed)
        os.kill(int(listed.split("process ")[1].split()[0]), 15)
        until(lambda: not self.helpers(p), "its end")


if __name__ == "__main__":
    unittest.main()
