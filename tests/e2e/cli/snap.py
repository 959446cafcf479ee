#!/usr/bin/env python3
"""`heddle snap list|info|verify|prune|compact` on files made by harness/snap_file.py.

    HED_BUILD=build/dev snap.py [Case.test...]
"""

import fcntl
import json
import os
import unittest

from case import SOURCE, Case
from harness.snap_file import BLOCK, DEVICE, FILE, PARTIAL, SnapFile, sample


class SnapCase(Case):
    def save(self, count=3):
        """A chain of snapshots, the first complete; returns them."""
        files = []
        for epoch in range(1, count + 1):
            files.append(sample(epoch=epoch, parent=files[-1] if files else None, change=epoch))
            self.write(f"{epoch}.snap", bytes(files[-1].data))
        return files

    def flip(self, name, at):
        with open(self.path(name), "r+b") as f:
            f.seek(at)
            b = f.read(1)
            f.seek(at)
            f.write(bytes([b[0] ^ 1]))

    def names(self):
        return sorted(os.listdir(self.dir))


class List(SnapCase):
    def test_an_empty_folder(self):
        self.assertIn("no snapshot", self.expect(0, "snap", "list").stdout)
        self.expect(1, "snap", "list", "nowhere", says="cannot open the folder 'nowhere'")

    def test_snapshots_are_shown_newest_first(self):
        self.save()
        lines = self.expect(0, "snap", "list", self.dir).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:]], ["3.snap", "2.snap", "1.snap"])
        self.assertTrue(all(line.endswith(" ok") for line in lines[1:]))

    def test_json_has_everything(self):
        self.save(2)
        self.write("HEAD", "2.snap\n")
        got = json.loads(self.expect(0, "snap", "list", "--json").stdout)
        self.assertEqual(got["head"], "2.snap")
        first, second = got["snapshots"][1], got["snapshots"][0]
        self.assertEqual(second["parent"], first["uuid"])
        self.assertEqual((first["homes"], second["homes"]), (0, 1))
        self.assertEqual(second["state"], "ok")
        self.assertEqual(first["content_bytes"], second["content_bytes"])
        self.assertGreater(first["stored_bytes"], second["stored_bytes"])
        self.assertEqual(first["program"], "./train")

    def test_damage_is_shown(self):
        self.save()
        size = os.path.getsize(self.path("3.snap"))
        self.flip("3.snap", size - BLOCK - 10)
        os.unlink(self.path("1.snap"))
        self.write("x.snap", "nonsense")
        self.write("4.snap.tmp-1", "")
        out = self.expect(1, "snap", "list").stdout
        self.assertRegex(out, r"3\.snap .* damaged\n")
        self.assertRegex(out, r"2\.snap .* incomplete\n")
        self.assertIn("x.snap: not a snapshot", out)
        self.assertIn("1 unfinished file", out)

    def test_names_cannot_control_the_terminal(self):
        self.write("a\x1b[31m.snap", "nonsense")
        self.assertNotIn("\x1b", self.expect(1, "snap", "list").stdout)


class Golden(SnapCase):
    def test_the_file_that_is_kept_is_still_made(self):
        with open(os.path.join(SOURCE, "tests/unit/snap/golden/version_1.snap"), "rb") as f:
            self.assertEqual(f.read(), bytes(sample().data))


class Info(SnapCase):
    def test_a_snapshot_is_described(self):
        files = self.save(2)
        out = self.expect(0, "snap", "info", "2.snap").stdout
        for part in ("program      ./train", "holds        device: 22.7 KiB in 2 pieces",
                     "epoch        2", "needs        01000000-0000-0000-a0a0-a0a0a0a0a0a0",
                     "streams 2"):
            self.assertIn(part, out)
        self.assertNotIn("pages-1.img", out)
        out = self.expect(0, "snap", "info", "2.snap", "--extents").stdout
        self.assertIn("pages-1.img", out)
        self.assertIn("0x200000200000", out)
        got = json.loads(self.expect(0, "snap", "info", "--json", self.path("2.snap")).stdout)
        self.assertEqual(len(got["pieces"]), len(files[1].extents))
        self.assertEqual(got["pieces"][6]["name"], "pages-1.img")
        self.assertEqual(got["epoch"], 2)

    def test_what_cannot_be_read_is_explained(self):
        self.save(2)
        os.unlink(self.path("1.snap"))
        self.expect(1, "snap", "info", "2.snap", says="needs snapshot 01000000-")
        self.expect(1, "snap", "info", "3.snap", says="cannot open it: not found")
        self.write("v9.snap", bytes(SnapFile(major=9).finish().data))
        self.expect(1, "snap", "info", "v9.snap", says="version 9.0 of the format")
        self.write("part.snap", bytes(SnapFile().finish(flags=PARTIAL).data))
        self.expect(1, "snap", "info", "part.snap", says="not complete")
        self.write("new.snap", bytes(SnapFile().finish(needs=1 << 7).data))
        self.expect(1, "snap", "info", "new.snap", says="does not have (0x80)")
        self.expect(2, "snap", "info", says="no file given")

    def test_files_that_mean_harm_are_refused(self):
        for name in ("../x", ".", "", "a/b"):
            f = SnapFile().extent(FILE, name=name, data=b"x").finish()
            self.write("bad.snap", bytes(f.data))
            self.expect(1, "snap", "info", "bad.snap", says="extent 0")
        f = SnapFile()
        f.extent(DEVICE, key=1, data=b"x").extent(DEVICE, key=1, data=b"y").finish()
        self.write("bad.snap", bytes(f.data))
        self.expect(1, "snap", "info", "bad.snap", says="appears twice")
        f = SnapFile()
        f.homes = [f]
        self.write("bad.snap", bytes(f.finish().data))
        self.expect(1, "snap", "info", "bad.snap", says="names itself")


class Verify(SnapCase):
    def test_intact_snapshots(self):
        self.save()
        r = self.expect(0, "snap", "verify", self.dir)
        self.assertEqual(r.stdout.count(": intact"), 3)
        self.assertEqual(self.expect(0, "snap", "verify", "--quiet", "1.snap", "2.snap").stdout, "")
        self.expect(0, "snap", "verify", "--threads", "3", "3.snap")

    def test_a_flipped_bit_in_a_payload_is_found(self):
        self.save()
        self.expect(0, "snap", "verify", "--quiet", self.dir)
        self.flip("1.snap", BLOCK + 100)
        self.expect(1, "snap", "verify", "1.snap", says="chunk 0 of device 0x200000000000")
        # The newest one has its bytes there.
        self.expect(1, "snap", "verify", "3.snap", says="in snapshot 01000000-")

    def test_wrong_words(self):
        self.expect(2, "snap", "verify", says="no file or folder")
        self.expect(2, "snap", "verify", "--threads", "0", "x", says="--threads '0'")
        self.expect(1, "snap", "verify", self.dir, says="no snapshot in")


class Prune(SnapCase):
    def test_old_ones_go_and_homes_stay(self):
        self.save(6)
        self.write("9.snap.tmp-7", "left behind")
        r = self.expect(0, "snap", "prune", self.dir, "--keep", "2", "--dry-run")
        self.assertIn("would remove 4.snap", r.stdout)
        self.assertEqual(len(self.names()), 7)
        r = self.expect(0, "snap", "prune", self.dir, "--keep", "2")
        self.assertIn("3 removed", r.stdout)
        self.assertIn("1 of them only because", r.stdout)
        self.assertEqual(self.names(), ["1.snap", "5.snap", "6.snap"])
        self.expect(0, "snap", "verify", self.dir)

    def test_compacting_frees_the_homes(self):
        self.save(6)
        made = self.expect(0, "snap", "compact", "6.snap").stdout.strip()
        self.expect(0, "snap", "prune", self.dir, "--keep", "1")
        self.assertEqual(self.names(), sorted(["HEAD", made]))
        got = json.loads(self.expect(0, "snap", "info", "--json", made).stdout)
        self.assertEqual((got["homes"], got["epoch"]), (0, 6))
        self.expect(0, "snap", "verify", made)

    def test_a_writer_is_not_disturbed(self):
        self.save()
        folder = os.open(self.dir, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_SH)
        self.expect(1, "snap", "prune", self.dir, says="is writing a snapshot")
        os.close(folder)
        self.expect(0, "snap", "prune", self.dir)

    def test_damaged_ones_go_only_if_asked(self):
        self.save()
        self.flip("3.snap", 20)
        self.expect(0, "snap", "prune", self.dir)
        self.assertIn("3.snap", self.names())
        self.expect(0, "snap", "prune", self.dir, "--damaged")
        self.assertEqual(self.names(), ["1.snap", "2.snap"])

    def test_wrong_words(self):
        self.expect(2, "snap", "prune", says="no folder given")
        self.expect(2, "snap", "prune", ".", "--keep", "0", says="--keep '0'")
        self.expect(2, "snap", "compact", says="no file given")
        self.expect(2, "snap", "compact", "x", "--zstd", "99", says="--zstd '99'")
        self.save(1)
        self.expect(1, "snap", "compact", "1.snap", "-o", "1.snap", says="already")
        self.expect(1, "snap", "compact", "1.snap", "-o", "a/b", says="cannot be the name")


class Compact(SnapCase):
    def test_compressed_copies_have_the_same_content(self):
        self.save(2)
        r = self.heddle("snap", "compact", "2.snap", "-o", "packed", "--zstd", "3")
        if "built without" in r.stderr:
            self.skipTest(r.stderr)
        self.assertEqual(r.stdout, "packed.snap\n")
        got, before = (json.loads(self.expect(0, "snap", "info", "--json", name).stdout)
                       for name in ("packed.snap", "2.snap"))
        self.assertEqual(got["pieces"], before["pieces"])
        self.expect(0, "snap", "verify", "packed.snap")


if __name__ == "__main__":
    unittest.main()
