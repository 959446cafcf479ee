"""tools/ship: what ELF files need, bills of materials, wheels and tarballs."""

import argparse
import base64
import hashlib
import os
from pathlib import Path
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock
import zipfile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ship"))
import bill     # noqa: E402
import changes  # noqa: E402
import elf      # noqa: E402
import tarball  # noqa: E402
import wheel    # noqa: E402

EPOCH = 1700000000
PART = bill.Component("libsome-dev", "1.2", "MIT", "1.2-3", None)
THREAD = ("#include <pthread.h>\nstatic void *nop(void *p) { return p; }\n"
          "int f(void) { pthread_t t; return pthread_create(&t, 0, nop, 0); }\n")


def fake(path="a.so", machine="x86_64", needed=(), runpath="", versions=None):
    return elf.Elf(path, machine, path, list(needed), runpath, versions or {})


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def library(self, name, code=THREAD, *options):
        """Builds a shared library."""
        out = self.folder / name
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", out,
                        f"-Wl,-soname,{out.name}", *options], input=code.encode(), check=True)
        return out

    def refused(self, text, function, *args):
        with self.assertRaises((elf.Refused, elf.Malformed, bill.Unknown)) as e:
            function(*args)
        self.assertIn(text, str(e.exception))


class Needs(Case):
    def test_the_same_is_read_as_readelf_reads(self):
        library = self.library("libone.so.1", THREAD, "-lm", "-Wl,--no-as-needed", "-lm",
                               "-Wl,-rpath,$ORIGIN/x")
        found = elf.read(library)
        shown = subprocess.run(["readelf", "-W", "-d", "-V", library], check=True,
                               capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        self.assertEqual(found.needed, re.findall(r"NEEDED.*\[(.*)\]", shown.stdout))
        self.assertEqual((found.soname, found.runpath), ("libone.so.1", "$ORIGIN/x"))
        needs = shown.stdout.split(".gnu.version_r")[1]
        self.assertEqual(sorted(v for names in found.versions.values() for v in names),
                         sorted(re.findall(r"Name: (\S+)", needs)))
        self.assertIn(found.machine, ("x86_64", "aarch64"))

    def test_what_is_no_elf_file_is_none(self):
        (self.folder / "text").write_text("#!/bin/sh\n")
        self.assertIsNone(elf.read(self.folder / "text"))
        (self.folder / "empty").write_text("")
        self.assertIsNone(elf.read(self.folder / "empty"))

    def test_a_piece_of_a_file_is_refused_or_read(self):
        data = self.library("libone.so").read_bytes()
        for length in [*range(4, 200), *range(200, len(data), 97)]:
            try:
                elf.read_bytes(data[:length], "piece")
            except elf.Malformed:
                pass
        self.refused("not a whole ELF file", elf.read_bytes, data[:100], "piece")

    def test_the_newest_version_counts(self):
        elves = [fake(versions={"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.34"]}),
                 fake("b.so", versions={"libm.so.6": ["GLIBC_2.29", "GLIBC_2.4"]})]
        self.assertEqual(elf.requirements(elves), ("x86_64", (2, 34)))
        self.assertEqual(elf.requirements([fake()]), ("x86_64", (2, 17)))

    def test_versions_without_an_order_are_refused(self):
        for name in ("GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR"):
            self.refused(name, elf.requirements, [fake(versions={"libc.so.6": [name]})])
        self.refused("GCC_14.0.0 of libgcc_s.so.1, which is too new", elf.requirements,
                     [fake(versions={"libgcc_s.so.1": ["GCC_3.0", "GCC_14.0.0"]})])

    def test_libraries_of_other_packages_are_refused(self):
        self.refused("a.so needs libzstd.so.1, which a clean machine lacks", elf.requirements,
                     [fake(needed=["libc.so.6", "libzstd.so.1"])])
        own = fake("lib/libown.so.0")
        elf.requirements([own._replace(soname="libown.so.0"),
                          fake(needed=["libown.so.0", "libm.so.6", "libgcc_s.so.1"])])

    def test_folders_of_the_builder_and_two_processors_are_refused(self):
        self.refused("looks for libraries in /home/me", elf.requirements,
                     [fake(runpath="/home/me/lib")])
        self.refused("aarch64 and x86_64", elf.requirements, [fake(), fake(machine="aarch64")])
        self.refused("no processor", elf.requirements, [])


class Bill(Case):
    def copyright_file(self, text):
        path = self.folder / "copyright"
        path.write_text(text)
        return path

    def test_licences_are_read_from_packages(self):
        head = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        for text, licence in (
                ("\nFiles: *\nCopyright: A\nLicense: Expat\n text\n", "MIT"),
                ("\nFiles: debian/*\nLicense: GPL-2\n\nFiles: *\nCopyright: A\n  B\n"
                 "License: BSD-3-clause or GPL-2\n", "BSD-3-Clause OR GPL-2.0-only"),
                ("\nFiles: *\nCopyright: A\n\n\nLicense: Zlib\n", "Zlib")):
            self.assertEqual(bill.licence_of("some", self.copyright_file(head + text)), licence)

    def test_an_unknown_licence_stops(self):
        self.refused("the licence 'Odd-1.0' is not known", bill.licence_of, "some",
                     self.copyright_file("Files: *\nLicense: Odd-1.0\n"))
        self.refused("the licence '' is not known", bill.licence_of, "some",
                     self.copyright_file("All rights reserved.\n"))

    def test_prose_must_say_what_it_said(self):
        text = "... with the GCC\nRuntime Library Exception ..."
        self.assertEqual(bill.licence_of("gcc-12", self.copyright_file(text)),
                         "GPL-3.0-or-later WITH GCC-exception-3.1")
        self.refused("the licence is not what it was", bill.licence_of, "gcc-12",
                     self.copyright_file("GPL"))

    def test_versions_are_upstreams(self):
        for debian, version in (("1:19.1.7-3~deb12u1", "19.1.7"), ("1.5.4+dfsg2-5", "1.5.4"),
                                ("1:1.2.13.dfsg-1", "1.2.13"), ("2.36-9+deb12u14", "2.36"),
                                ("0.3.21+ds-4", "0.3.21")):
            self.assertEqual(bill.upstream_version(debian), version)

    def test_expressions_are_put_together(self):
        parts = [PART, PART._replace(licence="BSD-3-Clause OR GPL-2.0-only")]
        self.assertEqual(bill.licence_expression(parts),
                         "Apache-2.0 AND (BSD-3-Clause OR GPL-2.0-only) AND MIT")

    def test_archives_are_those_of_the_links(self):
        archive = self.folder / "elsewhere/libz.a"
        archive.parent.mkdir()
        archive.write_text("")
        build = self.folder / "build"
        build.mkdir()
        (build / "build.ninja").write_text(
            f"build x: C_LINKER y\n  LINK_LIBRARIES = src/libown.a  {archive}  -lm\n"
            f"  FLAGS = /not/linked.a\n  LINK_LIBRARIES = {build}/src/libown.a {archive}\n")
        found = [name for name in bill.linked_archives(build)
                 if not name.endswith(bill.OF_EVERY_LINK)]
        self.assertEqual(found, [str(archive.resolve())])
        self.refused("belongs to no Debian package", bill.owner, str(archive))

    def test_a_document_names_files_parts_and_how_they_hang_together(self):
        packed, other = self.folder / "a.whl", self.folder / "b.deb"
        packed.write_bytes(b"a")
        other.write_bytes(b"b")
        made = bill.document([PART], "0.3.0", EPOCH, "x86_64", [packed], [other])
        self.assertEqual(made, bill.document([PART], "0.3.0", EPOCH, "x86_64", [packed], [other]))
        by_name = {p["name"]: p for p in made["packages"]}
        self.assertEqual(by_name["a.whl"]["checksums"][0]["checksumValue"],
                         hashlib.sha256(b"a").hexdigest())
        self.assertEqual(by_name["libsome-dev"]["versionInfo"], "1.2")
        relations = {(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"])
                     for r in made["relationships"]}
        self.assertIn((by_name["a.whl"]["SPDXID"], "STATIC_LINK",
                       by_name["libsome-dev"]["SPDXID"]), relations)
        self.assertNotIn((by_name["b.deb"]["SPDXID"], "STATIC_LINK",
                          by_name["libsome-dev"]["SPDXID"]), relations)
        self.assertEqual(made["creationInfo"]["created"], "2023-11-14T22:13:20Z")


class Changes(Case):
    TEXT = """# Changelog

## [Unreleased]
{}
## [0.3.0] - 2026-11-18

### Added

- Something.

## [0.2.0]

Old.
"""

    def said(self, text, *arguments):
        with self.assertRaises(ValueError) as e:
            changes.section(*arguments)
        self.assertIn(text, str(e.exception))

    def test_the_section_of_the_version(self):
        self.assertEqual(changes.section(self.TEXT.format(""), "0.3.0", False),
                         "## 0.3.0 - 2026-11-18\n\n### Added\n\n- Something.")

    def test_what_is_not_ready_is_refused(self):
        self.said("has no section [0.4.0]", self.TEXT.format(""), "0.4.0", False)
        self.said("has no section [0.3]", self.TEXT.format(""), "0.3", False)
        self.said("[0.2.0] has no date", self.TEXT.format(""), "0.2.0", False)
        self.said("lines under [Unreleased]", self.TEXT.format("\n- New.\n"), "0.3.0", False)

    def test_a_try_takes_what_there_is(self):
        self.assertEqual(changes.section(self.TEXT.format("\n- New.\n"), "Unreleased", True),
                         "## Unreleased\n\n- New.")


class Packed(Case):
    """A tree as `cmake --install` makes it, packed."""

    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        library = self.library("tree/lib/heddle/libcuda.so.1")
        (library.parent / "libcuda.so").symlink_to(library.name)
        for name, text in (("bin/heddle", "command"), ("share/heddle/devices/t4.json", "{}"),
                           ("share/man/man1/heddle.1", ".TH"), ("include/heddle.h", "/* */"),
                           ("lib/systemd/system/heddled.service", "ExecStart=/here"),
                           ("share/heddle/python/heddle/__init__.py", "")):
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.tree / "bin/heddle").chmod(0o755)
        self.python = self.folder / "python"
        self.python.mkdir()
        (self.python / "__init__.py").write_text("")
        (self.python / "notes.txt").write_text("not packed")
        copyright_file = self.folder / "copyright"
        copyright_file.write_text("free")
        parts = [PART._replace(copyright_file=copyright_file)]
        patch = mock.patch.object(bill, "components", return_value=parts)
        patch.start()
        self.addCleanup(patch.stop)

    def arguments(self, out):
        (self.folder / out).mkdir(exist_ok=True)
        return argparse.Namespace(
            tree=self.tree, command=self.tree / "lib/heddle/libcuda.so.1", build="unused",
            python=self.python, version="0.3.0", epoch=EPOCH, out=self.folder / out,
            for_here=False)


class Wheels(Packed):
    def files(self):
        with zipfile.ZipFile(wheel.pack(self.arguments("out"))) as z:
            return {i.filename: (z.read(i), i.external_attr >> 16) for i in z.infolist()}

    def test_everything_has_its_place(self):
        files = self.files()
        self.assertEqual(
            sorted(name for name in files if ".dist-info/" not in name),
            ["heddle/__init__.py", "heddle/_native/bin/heddle",
             "heddle/_native/lib/heddle/libcuda.so", "heddle/_native/lib/heddle/libcuda.so.1",
             "heddle/_native/share/heddle/devices/t4.json",
             "heddle_cuda-0.3.0.data/data/share/man/man1/heddle.1",
             "heddle_cuda-0.3.0.data/scripts/heddle"])
        self.assertEqual(files["heddle/_native/bin/heddle"][1], 0o100755)
        self.assertEqual(files["heddle/__init__.py"][1], 0o100644)
        # A wheel has no links.
        self.assertEqual(files["heddle/_native/lib/heddle/libcuda.so"],
                         files["heddle/_native/lib/heddle/libcuda.so.1"])

    def test_the_record_has_the_sums_of_all_files(self):
        files = self.files()
        record = files["heddle_cuda-0.3.0.dist-info/RECORD"][0].decode()
        sums = dict(line.split(",", 1) for line in record.splitlines())
        self.assertEqual(sorted(sums), sorted(files))
        for name, text in sums.items():
            data = files[name][0]
            want = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            self.assertEqual(text, "," if name.endswith("/RECORD") else
                             f"sha256={want},{len(data)}", name)

    def test_the_tag_is_in_the_name_and_in_the_wheel(self):
        path = wheel.pack(self.arguments("out"))
        needs = elf.requirements([elf.read(self.tree / "lib/heddle/libcuda.so.1")])
        tag = f"py3-none-manylinux_{needs[1][0]}_{needs[1][1]}_{needs[0]}"
        self.assertEqual(path.name, f"heddle_cuda-0.3.0-{tag}.whl")
        described, _ = self.files()["heddle_cuda-0.3.0.dist-info/WHEEL"]
        self.assertIn(f"Tag: {tag}\n", described.decode())

    def test_a_plug_in_for_pytest_is_announced_if_it_is_there(self):
        name = "heddle_cuda-0.3.0.dist-info/entry_points.txt"
        self.assertNotIn(name, self.files())
        (self.python / "pytest_plugin.py").write_text("")
        self.assertEqual(self.files()[name][0],
                         b"[pytest11]\nheddle.pytest_plugin = heddle.pytest_plugin\n")

    def test_equal_input_gives_equal_bytes(self):
        one = wheel.pack(self.arguments("one")).read_bytes()
        for path in self.tree.rglob("*"):
            if not path.is_symlink():
                os.utime(path, (1, 1))
        self.assertEqual(one, wheel.pack(self.arguments("two")).read_bytes())

    def test_what_has_no_place_is_refused(self):
        (self.tree / "lib/other.so").write_text("")
        self.refused("lib/other.so is installed, but", wheel.pack, self.arguments("out"))

    def test_a_library_that_others_lack_is_refused(self):
        self.library("libfar.so.1", "int far(void) { return 1; }")
        self.library("tree/lib/heddle/plug.so", "int far(void); int g(void) { return far(); }",
                     self.folder / "libfar.so.1")
        arguments = self.arguments("out")
        self.refused("needs libfar.so.1, which a clean machine lacks", wheel.pack, arguments)
        arguments.for_here = True
        path = wheel.pack(arguments)
        self.assertRegex(path.name, r"^heddle_cuda-0.3.0-py3-none-linux_(x86_64|aarch64).whl$")
        with zipfile.ZipFile(path) as z:
            self.assertFalse([name for name in z.namelist() if name.endswith(".spdx.json")])

    def test_a_package_without_python_is_refused(self):
        (self.python / "__init__.py").unlink()
        self.refused("has no __init__.py", wheel.pack, self.arguments("out"))


class Tarballs(Packed):
    def test_links_and_modes_are_kept_and_machines_files_left_out(self):
        path, _ = tarball.pack(self.arguments("out"))
        with tarfile.open(path) as tar:
            members = {m.name.split("/", 1)[-1]: m for m in tar.getmembers()}
        self.assertEqual(members["lib/heddle/libcuda.so"].linkname, "libcuda.so.1")
        self.assertEqual(members["bin/heddle"].mode, 0o755)
        self.assertIn("include/heddle.h", members)
        self.assertIn("licenses/libsome-dev.txt", members)
        self.assertIn("LICENSE", members)
        self.assertFalse([name for name in members if "systemd" in name])
        self.assertEqual({(m.uid, m.uname, m.mtime) for m in members.values()},
                         {(0, "root", EPOCH)})

    def test_equal_input_gives_equal_bytes(self):
        one = tarball.pack(self.arguments("one"))[0].read_bytes()
        (self.tree / "bin/heddle").touch()
        self.assertEqual(one, tarball.pack(self.arguments("two"))[0].read_bytes())


if __name__ == "__main__":
    unittest.main()
