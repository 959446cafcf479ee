#!/usr/bin/env python3
"""`heddle fatbin` from the outside: what it finds, lists and extracts, how it reports damage, and
its exit codes. Extracted images equal those that nvcc put in and that cuobjdump extracts.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch [HED_NVCC=nvcc] [HED_CUOBJDUMP=cuobjdump]
        fatbin.py [Case.test...]
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.fatbin_file import (  # noqa: E402
    CUBIN, EXACT, PTX, archive, elf, entry, fatbin, wrapper)
from harness.patience import PATIENCE  # noqa: E402

HEDDLE = os.path.join(os.environ.get("HED_BUILD", ""), "bin", "heddle")
CORPUS = Path(__file__).resolve().parents[2] / "fuzz" / "corpus"
SOURCE = Path(__file__).resolve().parent / "fatbin_kernels.cu"
NVCC = os.environ.get("HED_NVCC", "")
CUOBJDUMP = (os.environ.get("HED_CUOBJDUMP")
             or shutil.which("cuobjdump", path=os.path.dirname(NVCC) or None))
PTX_TEXT = b".version 7.0\n.target sm_75\n.address_size 64\n.entry k()\n{\nret;\n}\n"


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=os.environ.get("HED_SCRATCH"))

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, data, name="file"):
        Path(self.path(name)).write_bytes(data)
        return self.path(name)

    def run_it(self, *words, code=0, text=True):
        """(stdout, stderr) of heddle fatbin; the exit code is checked."""
        p = subprocess.run([HEDDLE, "fatbin", *words], capture_output=True, text=text,
                           timeout=PATIENCE)
        self.assertEqual(p.returncode, code, f"{words}\n{p.stdout}\n{p.stderr}")
        return p.stdout, p.stderr

    def rows(self, *words, **more):
        """The output of list --json: one object per image."""
        return [json.loads(line) for line in self.run_it("list", "--json", *words, **more)[0]
                .splitlines()]

    def archs(self, *words, **more):
        return [row["arch"] for row in self.rows(*words, **more)]

    def extract(self, *words, **more):
        """The extracted images: {number: bytes}."""
        out = self.run_it("extract", "--json", "-o", self.path("out"), *words, **more)[0]
        rows = [json.loads(line) for line in out.splitlines()]
        return {row["entry"]: Path(row["path"]).read_bytes() for row in rows}


class List(Case):
    def test_a_file_is_listed_as_text(self):
        out, err = self.run_it("list", str(CORPUS / "fatbin" / "parts"))
        self.assertEqual(err, "")
        lines = [line.split() for line in out.splitlines()]
        self.assertEqual(lines[1], ["1", "cubin", "sm_90", "10688", "2659", "zstd", "-", "k.cu"])
        self.assertEqual(lines[2], ["2", "ptx", "compute_90", "2119", "760", "zstd", "-",
                                    "--compile-only", "--generate-line-info", "k.cu"])

    def test_json_has_everything(self):
        row = self.rows("--entry", "2", str(CORPUS / "fatbin" / "parts"))[0]
        row.pop("file")
        self.assertEqual(row, {
            "entry": 2, "fatbin": 1, "kind": "ptx", "arch": "compute_90", "version": "9.0",
            "size": 2119, "stored": 760, "compression": "zstd", "offset": 2752, "section": "",
            "member": "", "relocatable": False, "bits": 64, "debug": False, "host": "linux",
            "flags": 0x8011, "options": "--compile-only  --generate-line-info ",
            "source": "k.cu"})

    def test_kernels(self):
        row = self.rows("--kernels", str(CORPUS / "cubin" / "sm_90"))[0]
        kernels = {k["name"]: k for k in row["kernels"]}
        self.assertEqual(sorted(kernels), ["add", "empty", "shared"])
        self.assertEqual([(p["offset"], p["size"]) for p in kernels["add"]["params"]],
                         [(0, 8), (8, 8), (16, 4), (20, 1), (24, 8)])
        self.assertEqual(kernels["shared"]["shared"], 256)
        self.assertEqual(kernels["shared"]["max_threads"], [128, 1, 1])
        out, _ = self.run_it("list", "--kernels", str(CORPUS / "cubin" / "sm_90"))
        self.assertIn("shared(32@0, 2@32, 8@40)  12 registers, 256 shared, at most 128x1x1 threads",
                      out)

    def test_sections_and_members(self):
        one = fatbin(entry(PTX, 75, PTX_TEXT))
        program = elf([(".rodata", one), (".nv_fatbin", one + one), ("__nv_relfatbin", one),
                       (".nvFatBinSegment", wrapper(1))])
        file = self.write(program)
        self.assertEqual([(r["section"], r["relocatable"]) for r in self.rows(file)],
                         [(".rodata", False), (".nv_fatbin", False), (".nv_fatbin", False),
                          ("__nv_relfatbin", True)])
        self.assertEqual(len(self.rows("--sections", file)), 3)
        rows = self.rows(self.write(archive([("a.o", program), ("b.ptx", PTX_TEXT)])))
        self.assertEqual([r["member"] for r in rows], ["a.o"] * 4 + ["b.ptx"])

    def test_selection(self):
        file = str(CORPUS / "fatbin" / "many")
        self.assertEqual(self.archs("--kind", "ptx", file), ["compute_75", "compute_100f"])
        self.assertEqual(self.archs("--kind", "elf", "--arch", "90a", file), ["sm_90a"])
        self.assertEqual(self.archs("--arch", "sm_75", file), ["sm_75"])
        self.assertEqual(self.archs("--arch", "75", file), ["sm_75", "compute_75"])
        self.assertEqual(self.archs("--kind", "ptx", "--arch", "sm_75", file), ["compute_75"])
        self.assertEqual(self.archs("--entry", "3", file), ["sm_90"])
        self.assertEqual(self.archs("--kind", "64", str(CORPUS / "fatbin" / "unknown")), ["sm_90"])
        _, err = self.run_it("list", "--arch", "sm_80", file, code=1)
        self.assertIn("none of its 6 images matches", err)

    def test_damage_is_reported_and_the_rest_is_listed(self):
        good = fatbin(entry(PTX, 75, PTX_TEXT))
        bad = fatbin(entry(CUBIN, 90, b"x" * 8, header=8))
        out, err = self.run_it("list", self.write(bad + good), code=1)
        self.assertIn("makes no sense", err)
        self.assertIn("compute_75", out)

    def test_control_characters_do_not_reach_the_terminal(self):
        out, _ = self.run_it("list", self.write(fatbin(entry(PTX, 75, PTX_TEXT,
                                                             name=b"\x1b[2Jx"))))
        self.assertNotIn("\x1b", out)
        self.assertIn("?[2Jx", out)

    def test_no_gpu_code(self):
        for data in b"", b"text", elf([(".text", b"x")]):
            self.assertIn("no GPU code", self.run_it("list", self.write(data), code=1)[1])
        self.assertIn("No such file", self.run_it("list", self.path("none"), code=1)[1])
        self.assertIn("not a regular", self.run_it("list", self.dir, code=1)[1])

    def test_usage(self):
        file = str(CORPUS / "fatbin" / "many")
        for words in ([], ["lits"], ["list"], ["list", "--kind", "x", file],
                      ["list", "--arch", "x", file], ["list", "--entry", "0", file],
                      ["list", "--nothing", file], ["extract"], ["info"], ["extract", "-o"],
                      ["disasm"], ["disasm", "--json", file], ["disasm", "--kernel"]):
            self.run_it(*words, code=2)
        for words in ["--help"], ["list", "--help"], ["extract", "-h"], ["info", "--help"], [
                "disasm", "--help"]:
            self.assertIn("usage: heddle fatbin", self.run_it(*words)[0])


class Extract(Case):
    def test_plain_images(self):
        cubin = (CORPUS / "cubin" / "sm_90a").read_bytes()
        file = self.write(fatbin(entry(CUBIN, 90, cubin, flags=0x11 | EXACT),
                                 entry(PTX, 75, PTX_TEXT + b"\0")), "app")
        out, err = self.run_it("extract", file, "-o", self.path("new"))
        self.assertEqual(err, "")
        self.assertEqual(out.split(), [self.path("new/app.1.sm_90a.cubin"),
                                       self.path("new/app.2.compute_75.ptx")])
        self.assertEqual(Path(out.split()[0]).read_bytes(), cubin)
        self.assertEqual(Path(out.split()[1]).read_bytes(), PTX_TEXT)

    def test_one_to_standard_output(self):
        file = self.write(fatbin(entry(PTX, 75, PTX_TEXT), entry(PTX, 80, PTX_TEXT)))
        out, _ = self.run_it("extract", "-o", "-", "--entry", "2", file, text=False)
        self.assertEqual(out, PTX_TEXT)
        _, err = self.run_it("extract", "-o", "-", file, code=2)
        self.assertIn("only one image", err)

    def test_images_that_cannot_be_extracted_are_named(self):
        lto = str(CORPUS / "fatbin" / "lto")
        self.assertIn("left out", self.run_it("extract", lto, "-o", self.dir)[1])
        self.assertIn("only NVIDIA's", self.run_it("extract", "--entry", "1", lto, "-o", self.dir,
                                                   code=1)[1])
        bad = str(CORPUS / "fatbin" / "noise")
        err = self.run_it("extract", bad, "-o", self.dir, code=1)[1]
        self.assertRegex(err, "entry 1 (does not unpack|needs LZ4 support)")
        self.assertRegex(err, "entry 2 (does not unpack|needs zstd support)")

    def test_files_of_the_same_name_do_not_overwrite_each_other(self):
        os.mkdir(self.path("d"))
        data = fatbin(entry(PTX, 75, PTX_TEXT))
        self.run_it("extract", self.write(data, "a"), self.write(data, "d/a"), "-o", self.dir,
                    code=2)


class Info(Case):
    def test_page(self):
        out, err = self.run_it("info", str(CORPUS / "fatbin" / "many"))
        self.assertEqual(err, "")
        self.assertIn("1 fat binary, 6 images", out)
        self.assertIn("JIT          possible, from PTX for compute_75", out)

    def test_json(self):
        row = json.loads(self.run_it("info", "--json", str(CORPUS / "cubin" / "sm_75"))[0])
        self.assertEqual(row["by_arch"], [{"kind": "cubin", "arch": "sm_75", "images": 1,
                                           "size": 6048, "stored": 6048, "kernels": 3,
                                           "most_kernels": 3}])
        self.assertEqual(row["jit_from"], "")

    def test_no_gpu_code_is_an_answer(self):
        self.assertIn("no GPU code", self.run_it("info", HEDDLE)[0])


class Disasm(Case):
    def test_kernels_have_addresses_and_labels(self):
        file = str(CORPUS / "cubin" / "sm_75")
        out = self.run_it("disasm", file)[0]
        kernels = [k["name"] for k in self.rows("--kernels", file)[0]["kernels"]]
        self.assertEqual(len(kernels), 3)
        for name in kernels:
            self.assertRegex(out, rf"(?m)^//-+ \.text\.{name} -+$")
            self.assertRegex(out, rf"(?m)^{name}:$")
        self.assertRegex(out, r"(?m)^ {8}/\*0000\*/ {19}\S.* ;$")
        label = re.search(r"BRA `\((\.L_x_\d+)\) ;", out)[1]
        self.assertIn(f"\n{label}:\n", out)

    def test_one_kernel(self):
        file = str(CORPUS / "cubin" / "sm_75")
        name = self.rows("--kernels", file)[0]["kernels"][1]["name"]
        out = self.run_it("disasm", "--kernel", name, file)[0]
        self.assertEqual(re.findall(r"\.text\.(\S+) -", out), [name])
        self.assertIn("no machine code of a kernel nothing",
                      self.run_it("disasm", "--kernel", "nothing", file, code=1)[1])

    def test_images_of_one_architecture(self):
        file = str(CORPUS / "fatbin" / "many")
        self.assertEqual(self.run_it("disasm", "--arch", "sm_75", file)[0],
                         self.run_it("disasm", str(CORPUS / "cubin" / "sm_75"))[0])

    def test_other_encodings_are_named(self):
        cubin = bytearray((CORPUS / "cubin" / "sm_75").read_bytes())
        for number in 75, 80, 86, 87, 89, 90, 120:
            cubin[49] = number   # in the ELF header's flags
            file = self.write(fatbin(entry(CUBIN, 80, cubin)))
            err = self.run_it("disasm", file)[1]
            warnings = re.findall(r"entry 1 is code for (\S+), .*sm_75 to sm_90", err)
            self.assertEqual(warnings, [] if number <= 90 else [f"sm_{number}"])
        kernel = self.rows("--kernels", file)[0]["kernels"][0]["name"]
        file = self.write(fatbin(*[entry(CUBIN, 120, cubin)] * 2))
        self.assertEqual(self.run_it("disasm", "--kernel", kernel, file)[1].count("sm_120"), 2)
        self.assertNotIn("sm_120", self.run_it("disasm", "--kernel", "nothing", file, code=1)[1])

    def test_nothing_to_disassemble(self):
        for data in b"text", PTX_TEXT:
            self.assertIn("no machine code", self.run_it("disasm", self.write(data), code=1)[1])
        cut = self.write((CORPUS / "cubin" / "sm_75").read_bytes()[:1000])
        self.assertNotEqual(self.run_it("disasm", cut, code=1)[1], "")


@unittest.skipUnless(NVCC, "no nvcc")
class Nvcc(Case):
    ARCHS = ["-gencode", "arch=compute_75,code=sm_75", "-gencode", "arch=compute_90a,code=sm_90a",
             "-gencode", "arch=compute_100f,code=sm_100f",
             "-gencode", "arch=compute_90,code=[sm_90,compute_90]"]
    EXPECT = ["sm_75", "sm_90a", "sm_100f", "sm_90", "compute_90"]

    def setUp(self):
        super().setUp()
        files = [str(CORPUS / "fatbin" / name) for name in ("lz4", "many")]
        p = subprocess.run([HEDDLE, "fatbin", "extract", "-o", self.path("try"), *files],
                           capture_output=True, text=True)
        if "built without" in p.stderr:
            self.skipTest("heddle was built without LZ4 or zstd")

    def nvcc(self, *words, out="out"):
        shutil.copy(SOURCE, self.path("k.cu"))
        subprocess.run([NVCC, *words, "-o", out, "k.cu"], cwd=self.dir, check=True)
        return self.path(out)

    def kept(self, arch):
        """The intermediate file of nvcc --keep for an architecture; cubins first."""
        return (next(iter(sorted(Path(self.dir).glob(f"k*{arch}.cubin"))), None)
                or Path(self.path(f"k.{arch}.ptx"))).read_bytes()

    def judge(self, file):
        """Every image equals the one that cuobjdump extracts."""
        if not CUOBJDUMP:
            return
        ours = self.extract("--sections", file)
        folder = tempfile.mkdtemp(dir=self.dir)
        names = {"cubin": [], "ptx": []}
        for option in "-xelf", "-xptx":
            out = subprocess.run([CUOBJDUMP, "-all", option, "all", file], cwd=folder,
                                 capture_output=True, text=True).stdout
            for name, kind in re.findall(r"^Extracting.*?:\s(\S+\.(ptx|cubin))", out, re.M):
                names[kind].append(name)
        for kind, listed in names.items():
            mine = [ours[row["entry"]] for row in self.rows("--sections", file)
                    if row["kind"] == kind]
            theirs = [Path(folder, name).read_bytes() for name in sorted(set(listed))]
            self.assertEqual(len(mine), len(listed), kind)
            # cuobjdump names images after their source, if they have it, and overwrites images of
            # the same name. It begins with .nv_fatbin; we go through the file in order.
            if len(theirs) == len(listed):
                self.assertEqual(sorted(mine), sorted(theirs), kind)
            self.assertLessEqual(set(theirs), set(mine), kind)

    def test_extracted_images_equal_those_of_the_compiler(self):
        file = self.nvcc("-fatbin", "--keep", *self.ARCHS, out="k.fatbin")
        self.assertEqual(self.archs(file), self.EXPECT)
        images = self.extract(file)
        for number, arch in (1, "75"), (2, "90a"), (3, "100f"), (4, "sm_90"):
            self.assertEqual(images[number], self.kept(arch), arch)
        # fatbinary removes comments, indentation and double blanks from PTX.
        self.assertEqual(images[5].split(),
                         re.sub(rb"//[^\n]*", b"", self.kept("compute_90")).split())
        self.judge(file)

    def test_program(self):
        file = self.nvcc("-DMAIN", *self.ARCHS, out="app")
        self.assertEqual(self.archs(file), self.EXPECT[:4] + self.EXPECT)
        self.judge(file)
        info = json.loads(self.run_it("info", "--json", file)[0])
        self.assertEqual(info["wrappers"], {"v1": 1, "v2": 1, "other": 0})
        self.assertEqual(info["jit_from"], "compute_90")

    def test_relocatable_device_code(self):
        file = self.nvcc("-DMAIN", "-rdc=true", "-arch=sm_90", out="app")
        rows = self.rows(file)
        self.assertEqual([(r["arch"], r["section"], r["relocatable"]) for r in rows],
                         [("sm_90", ".nv_fatbin", False), ("sm_90", "__nv_relfatbin", True),
                          ("compute_90", "__nv_relfatbin", True)])
        self.assertEqual(rows[2]["options"].strip(), "--compile-only")
        self.judge(file)
        self.judge(self.nvcc("-DMAIN", "-rdc=true", "-arch=sm_90", "-c", out="k.o"))

    def test_compression_modes(self):
        expect = {"none": "none", "speed": "LZ4", "balance": "zstd", "size": "zstd",
                  "default": "zstd"}
        images = []
        for mode, packing in expect.items():
            file = self.nvcc("-fatbin", "-gencode", "arch=compute_90,code=[sm_90,compute_90]",
                             "-Xfatbin", f"--compress-all,--compress-mode={mode}", out=mode)
            self.assertEqual([r["compression"] for r in self.rows(file)], [packing] * 2, mode)
            images.append(self.extract(file))
            self.judge(file)
        self.assertEqual(images, [images[0]] * len(images))

    def test_ptx_alone_and_no_ptx(self):
        file = self.nvcc("-fatbin", "-gencode", "arch=compute_80,code=compute_80", out="p")
        self.assertEqual(self.archs(file), ["compute_80"])
        self.assertNotEqual(json.loads(self.run_it("info", "--json", file)[0])["jit_from"], "")
        file = self.nvcc("-fatbin", "-gencode", "arch=compute_80,code=sm_80", out="c")
        self.assertEqual(self.archs(file), ["sm_80"])
        self.assertEqual(json.loads(self.run_it("info", "--json", file)[0])["jit_from"], "")

    def test_debug_and_library(self):
        file = self.nvcc("-G", "-maxrregcount=32", "-shared", "-Xcompiler", "-fPIC", "-arch=sm_90",
                         out="lib.so")
        rows = self.rows(file)[-2:]
        self.assertEqual([(r["debug"], r["source"]) for r in rows], [(True, "k.cu")] * 2)
        self.assertIn("-maxrregcount=32", rows[1]["options"])
        self.judge(file)

    @unittest.skipUnless(CUOBJDUMP, "no cuobjdump")
    def test_resources_equal_those_of_cuobjdump(self):
        for arch in "sm_75", "sm_90", "sm_100", "sm_120":
            file = self.nvcc("-cubin", f"-arch={arch}", out="k.cubin")
            out = subprocess.run([CUOBJDUMP, "-res-usage", file], capture_output=True,
                                 text=True).stdout
            theirs = {n: tuple(map(int, v)) for n, *v in re.findall(
                r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+) "
                r"CONSTANT\[0\]:(\d+)", out)}
            kernels = self.rows("--kernels", file)[0]["kernels"]
            self.assertEqual({k["name"]: (k["registers"], k["stack"],
                                          k["shared"] + k["shared_reserved"], k["local"],
                                          k["constant0"]) for k in kernels}, theirs)


if __name__ == "__main__":
    unittest.main()
