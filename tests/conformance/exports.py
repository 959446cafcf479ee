#!/usr/bin/env python3
"""What the shared libraries export: `exports.py LIBFOLDER GENFOLDER [TOOLKIT]`."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

LIB, GEN = Path(sys.argv[1]), Path(sys.argv[2])
TOOLKIT = Path(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3] else None
SANITIZED = len(sys.argv) > 4 and sys.argv[4] != ""

RUNTIMES = [LIB / "cudart" / f"libcudart.so.{n}" for n in ("8.0", "10.2", "11.0", "12", "13")]
ALSO_OLDER = {"libcudart.so.10.2", "libcudart.so.11.0"}  # they have what older editions had, too
CUDA, NVML, OWN = LIB / "libcuda.so.1", LIB / "libnvidia-ml.so.1", LIB / "libheddle.so.0"
LIBC = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux.*|libgcc_s\.so\.1"
                  r"|lib(asan|ubsan|tsan)\.so\.\d+|libclang_rt.*")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def symbols(path):
    """The dynamic symbols that are defined, with their kinds."""
    found = {}
    for line in run("nm", "-D", "--defined-only", path).splitlines():
        kind, name = line.split()[-2:]
        found[name] = kind
    return found


def dynamic(path, tag):
    return re.findall(rf"\({tag}\).*?\[(.*?)\]", run("readelf", "-dW", path))


class Exports(unittest.TestCase):
    def test_libcuda_is_what_the_spec_says(self):
        expected = set((GEN / "cuda.exports").read_text().split())
        found = symbols(CUDA)
        self.assertEqual(expected ^ set(found), set())
        self.assertEqual({k for k in found.values()}, {"T"})

    def test_nvml_is_what_the_spec_says(self):
        expected = set((GEN / "nvml.exports").read_text().split()) | {"nvmlErrorString"}
        self.assertEqual(expected ^ set(symbols(NVML)), set())

    def test_libheddle_exports_its_own_names_only(self):
        names = symbols(OWN)
        # The other one is what NVTX looks for in a library that takes ranges.
        self.assertEqual([n for n in names if not n.startswith(("hed_", "heddle_"))],
                         ["InitializeInjectionNvtx2"])
        for name in ("version", "record", "set_client", "mark", "range_push", "range_pop",
                     "read_counters"):
            self.assertIn(f"heddle_{name}", names)

    def test_every_name_of_the_toolkits_stub_is_exported(self):
        stub = TOOLKIT and next(iter(TOOLKIT.glob("lib*/stubs/libcuda.so")), None)
        if not stub:
            self.skipTest("no CUDA toolkit here")
        # The debugger's hooks (in the x86-64 stub only) are not for programs: cuda-gdb looks for
        # them in the library with the other half of the debugger: NVIDIA's, which is loaded, too.
        theirs = {n for n in symbols(stub) if not n.startswith("cudbg")}
        ours = set(symbols(CUDA))
        self.assertEqual(theirs - ours, set())
        # The graphics calls are not in the stub; only NVIDIA's real library has them.
        headers = "".join((TOOLKIT / "include" / h).read_text() for h in
                          ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h"))
        declared = set(re.findall(r"\b(cu[A-Z]\w+)\s*\(", headers))
        strange = {n for n in ours - theirs if re.sub(r"(_v\d+)?(_pt[ds]s|_ptsz)?$", "", n)
                   not in {re.sub(r"_v\d+$", "", d) for d in declared}}
        self.assertEqual(strange, set())

    def test_symbols_have_no_versions(self):
        """NVIDIA's libraries have no symbol versions: a program must not record ours."""
        for path in (CUDA, NVML):
            self.assertNotIn(".gnu.version_d", run("readelf", "-SW", path))


class Runtime(unittest.TestCase):
    """libcudart; cudart/ has the names that NVIDIA's 10.2, 11.8, 12.9 and 13.4 export."""

    def test_libraries_are_what_the_spec_says(self):
        for path in RUNTIMES:
            version = path.name
            expected = (GEN / f"cudart_{version[len('libcudart.so.'):]}.exports").read_text()
            found = symbols(path)
            found.pop(f"{version}", None)
            found.pop(f"{version}@@{version}", None)
            self.assertEqual({f"{n}@@{version}" for n in expected.split()} ^ set(found), set())
            self.assertEqual(set(found.values()), {"T"})

    def test_every_name_of_nvidias_library_is_exported(self):
        for path in RUNTIMES:
            names = Path(__file__).parent / "cudart" / f"{path.name}.names"
            if names.exists():
                ours = {n.split("@")[0] for n in symbols(path)}
                theirs = set(names.read_text().split())
                self.assertEqual(theirs - ours, set(), path.name)
                if path.name not in ALSO_OLDER:
                    self.assertEqual(ours - theirs - {path.name}, set(), path.name)

    def test_every_name_of_the_toolkits_library_is_exported(self):
        for path in RUNTIMES:
            theirs = TOOLKIT and next(iter(TOOLKIT.glob(f"lib*/{path.name}")), None)
            if theirs:
                self.assertEqual(set(symbols(theirs)) - set(symbols(path))
                                 - {f"{path.name}@@{path.name}", path.name}, set())


class Linking(unittest.TestCase):
    def test_sonames(self):
        for path in (CUDA, NVML, OWN, *RUNTIMES):
            self.assertEqual(dynamic(path, "SONAME"), [path.name])

    def test_nothing_but_libc_is_needed(self):
        for path in (CUDA, NVML, OWN, *RUNTIMES):
            for needed in dynamic(path, "NEEDED"):
                if path == OWN or needed != "libheddle.so.0":
                    self.assertRegex(needed, LIBC, f"{path.name} needs {needed}")
        self.assertIn("libheddle.so.0", dynamic(CUDA, "NEEDED"))

    def test_libraries_stay_loaded_and_bind_at_once(self):
        for path in (CUDA, NVML, OWN, *RUNTIMES):
            text = run("readelf", "-dW", path)
            self.assertRegex(text, r"FLAGS_1.*NODELETE", path.name)
            self.assertRegex(text, r"FLAGS_1.*NOW", path.name)
            self.assertNotIn("TEXTREL", text)
            self.assertRegex(text, r"\((RUNPATH|RPATH)\).*\[\$ORIGIN(/\.\.)?\]")

    def test_no_executable_stack_and_no_writable_code(self):
        for path in (CUDA, NVML, OWN, *RUNTIMES):
            text = run("readelf", "-lW", path)
            stack = re.search(r"GNU_STACK.*", text).group()
            self.assertNotIn("E", stack.split("0x")[-2].split()[-1], stack)
            self.assertNotIn("RWE", text)

    def test_nothing_is_left_undefined(self):
        if SANITIZED:
            self.skipTest("a sanitizer's runtime lives in the executable")
        for path in (CUDA, NVML, *RUNTIMES):
            undefined = [line.split()[-1] for line in run("nm", "-D", "-u", path).splitlines()]
            strange = [n for n in undefined if not n.startswith(("hed_", "_"))
                       and "@GLIBC" not in n]
            self.assertEqual(strange, [], path.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
