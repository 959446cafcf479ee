#!/usr/bin/env python3
"""`heddle run --cudart`: which CUDA runtime a program gets.

    HED_BUILD=build/dev HED_CC=cc HED_SCRATCH=/tmp/scratch cudart.py [Case.test...]

The runtimes here are stand-ins: libraries that say whose they are, with sonames and symbol versions
like those of CUDA runtimes, but of versions that no machine has. heddle is copied to the scratch
folder, with stand-ins for its own runtimes.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

from case import BUILD, HEDDLE, LIBDIR, PATIENCE, PYTHON, Case, clean_environment

CC = os.environ.get("HED_CC", "cc")
EDITIONS = ["91.0", "92", "93"]
AUDIT = os.path.join(LIBDIR, "libheddle-cudart-own.so")

RUNTIME = """
const char *
cudaStandIn(void)
{
    return WHOSE;
}
"""

# Says whose runtime it was linked with, if any, and whose it gets for each name that it opens.
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>

#ifdef LINKED
const char *cudaStandIn(void);
#endif

int
main(int argc, char **argv)
{
#ifdef LINKED
    puts(cudaStandIn());
#endif
    for (int i = 1; i < argc; i++) {
        void *h = dlopen(argv[i], RTLD_NOW);
        const char *(*whose)(void) = h ? (const char *(*)(void))dlsym(h, "cudaStandIn") : NULL;

        puts(whose ? whose() : "none");
    }
    return 0;
}
"""

# A library that opens a runtime by name: its own RUNPATH counts, not the program's.
OPENER = r"""
#include <dlfcn.h>

const char *
cudaStandIn(void)
{
    void *h = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
    const char *(*whose)(void) = h ? (const char *(*)(void))dlsym(h, "cudaStandIn") : 0;

    return whose ? whose() : "none";
}
"""

# A library that needs a runtime.
NEEDS = r"""
const char *cudaStandIn(void);

const char *
NAME(void)
{
    return cudaStandIn();
}
"""

# A library with static thread-local storage.
ROOM = r"""
__thread __attribute__((tls_model("initial-exec"))) char room[1024];

const char *
cudaStandIn(void)
{
    return room[9] == 0 ? "room" : "dirty";
}
"""


def compile_c(out, text, *flags):
    os.makedirs(os.path.dirname(out), exist_ok=True)
    source = out + ".c"
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run([CC, "-o", out, source, *flags], check=True, timeout=PATIENCE)
    return out


def make_runtime(folder, whose, edition, name=None):
    """A stand-in with the soname and the symbol version of that edition."""
    soname = f"libcudart.so.{edition}"
    out = os.path.join(folder, name or soname)
    os.makedirs(folder, exist_ok=True)
    with open(out + ".map", "w", encoding="utf-8") as f:
        f.write("libcudart.so.%s { global: cudaStandIn; local: *; };\n" % edition)
    compile_c(out, RUNTIME, f'-DWHOSE="{whose} {edition}"', "-shared", "-fPIC",
              f"-Wl,-soname,{name or soname}", f"-Wl,--version-script={out}.map")
    return out


def copy_heddle(prefix):
    """heddle and its libraries, which are linked to, in a folder of their own."""
    folder = os.path.join(prefix, "lib", "heddle")
    os.makedirs(folder)
    os.mkdir(os.path.join(prefix, "bin"))
    shutil.copy(HEDDLE, os.path.join(prefix, "bin", "heddle"))
    for name in os.listdir(LIBDIR):
        if name != "cudart":
            os.symlink(os.path.join(LIBDIR, name), os.path.join(folder, name))
    os.symlink(os.path.join(os.path.realpath(BUILD), "share"), os.path.join(prefix, "share"))


@unittest.skipUnless(shutil.which(CC), f"no compiler {CC}")
@unittest.skipUnless(os.path.exists(AUDIT), f"no {AUDIT}, as in a build with a sanitizer")
class Runtime(Case):
    @classmethod
    def setUpClass(cls):
        cls.root = os.path.join(os.environ["HED_SCRATCH"], "cudart")
        shutil.rmtree(cls.root, ignore_errors=True)
        copy_heddle(cls.at("prefix"))
        for edition in EDITIONS:
            make_runtime(cls.at("prefix", "lib", "heddle", "cudart"), "heddle", edition)
        for edition in ["90.1", "90.2", "92", "93"]:
            make_runtime(cls.at("nvidia"), "nvidia", edition)
        os.symlink("libcudart.so.93", cls.at("nvidia", "libcudart.so"))
        make_runtime(cls.at("wheel"), "nvidia", "91.0", "libcudart-e409450e.so.91.0")
        make_runtime(cls.at("wheel"), "nvidia", "91.0", "libcudart.3eda8113.so.91.0")
        make_runtime(cls.at("wheel"), "nvidia", "91.0")
        compile_c(cls.at("plain"), PROGRAM)
        cls.link("none", "92")
        cls.link("runpath", "92", "-Wl,--enable-new-dtags,-rpath," + cls.at("nvidia"))
        cls.link("rpath", "92", "-Wl,--disable-new-dtags,-rpath," + cls.at("nvidia"))
        compile_c(cls.at("renamed"), PROGRAM, "-DLINKED",
                  cls.at("wheel", "libcudart-e409450e.so.91.0"), "-Wl,-rpath," + cls.at("wheel"))
        # Two libraries that need one runtime under three names.
        for name, runtime in (("first", "libcudart-e409450e.so.91.0"),
                              ("second", "libcudart.3eda8113.so.91.0")):
            compile_c(cls.at(f"lib{name}.so"), NEEDS, "-shared", "-fPIC", f"-DNAME={name}",
                      cls.at("wheel", runtime), "-Wl,-rpath," + cls.at("wheel"))
        compile_c(cls.at("names"), PROGRAM, "-DLINKED", "-Wl,--no-as-needed",
                  cls.at("wheel", "libcudart.so.91.0"), cls.at("libfirst.so"),
                  cls.at("libsecond.so"), "-Wl,-rpath," + cls.at("wheel"),
                  "-Wl,-rpath," + cls.root)
        for name, folder in (("near", "nvidia"), ("far", "nowhere")):
            compile_c(cls.at(f"lib{name}.so"), OPENER, "-shared", "-fPIC",
                      '-DNAME="libcudart.so.93"', "-Wl,-rpath," + cls.at(folder))

    @classmethod
    def at(cls, *names):
        return os.path.join(cls.root, *names)

    @classmethod
    def link(cls, name, edition, *flags):
        return compile_c(cls.at(name), PROGRAM, "-DLINKED",
                         cls.at("nvidia", f"libcudart.so.{edition}"), *flags)

    def run_copy(self, *args, **env):
        return subprocess.run([self.at("prefix", "bin", "heddle"), "run", *args],
                              env=clean_environment(**env), cwd=self.dir, capture_output=True,
                              text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)

    def check(self, expected, *args, says="", **env):
        """Runs a program; expected are its lines, and says is its whole standard error."""
        r = self.run_copy(*args, **env)
        self.assertEqual((r.returncode, r.stdout.splitlines(), r.stderr), (0, expected, says))


class Auto(Runtime):
    """The program's own, and heddle's if it finds none."""

    def test_a_program_that_finds_one_keeps_it(self):
        self.check(["nvidia 92"], self.at("runpath"))
        self.check(["nvidia 92"], self.at("rpath"))
        self.check(["nvidia 92"], self.at("none"), LD_LIBRARY_PATH=self.at("nvidia"))
        self.check(["nvidia 92"], "--cudart", "auto", self.at("runpath"))

    def test_a_program_that_finds_none_gets_heddles(self):
        self.check(["heddle 92"], self.at("none"))

    def test_the_null_backend_works_with_both(self):
        note = "heddle: warning: --gpu null answers CUDA calls but computes nothing\n"
        self.check(["nvidia 92"], "--gpu", "null", self.at("runpath"), says=note)
        self.check(["heddle 92"], "--gpu", "null", "--cudart", "own", self.at("runpath"),
                   says=note)

    def test_a_library_that_is_opened_later(self):
        self.check(["heddle 92", "heddle 93", "heddle 91.0"], self.at("plain"),
                   "libcudart.so.92", "libcudart.so.93", "libcudart.so.91.0")
        self.check(["nvidia 92", "nvidia 93", "heddle 91.0"], self.at("plain"),
                   "libcudart.so.92", "libcudart.so.93", "libcudart.so.91.0",
                   LD_LIBRARY_PATH=self.at("nvidia"))

    def test_the_search_path_of_the_library_that_asks_counts(self):
        self.check(["nvidia 93"], self.at("plain"), self.at("libnear.so"))
        self.check(["heddle 93"], self.at("plain"), self.at("libfar.so"))

    def test_a_path_names_one_file(self):
        self.check(["none", "nvidia 93"], self.at("plain"), self.at("nowhere", "libcudart.so.93"),
                   self.at("nvidia", "libcudart.so.93"))

    def test_names_that_say_no_version_or_one_that_heddle_lacks_are_left_alone(self):
        self.check(["none", "none", "none", "none"], self.at("plain"), "libcudart.so",
                   "libcudart.so.90.1", "libcudart_static.so.93", "libcudart.so.93.so")

    def test_a_file_for_another_machine_is_passed_over_as_the_loader_does(self):
        os.mkdir(self.path("other"))
        with open(self.at("nvidia", "libcudart.so.92"), "rb") as f:
            data = bytearray(f.read())
        struct.pack_into("<H", data, 18, 21)  # PowerPC
        self.write(os.path.join("other", "libcudart.so.92"), bytes(data), 0o755)
        self.check(["heddle 92"], self.at("none"), LD_LIBRARY_PATH=self.path("other"))

    def test_python_opens_it_by_name(self):
        script = ("import ctypes, sys\n"
                  "f = ctypes.CDLL('libcudart.so.92').cudaStandIn\n"
                  "f.restype = ctypes.c_char_p\n"
                  "print(f().decode())\n")
        self.check(["heddle 92"], PYTHON, "-c", script)
        self.check(["nvidia 92"], PYTHON, "-c", script, LD_LIBRARY_PATH=self.at("nvidia"))

    def test_programs_that_the_program_starts_are_treated_alike(self):
        self.check(["heddle 92", "nvidia 92"], "sh", "-c",
                   f"{self.at('none')}; {self.at('runpath')}")

    def test_an_installation_without_runtimes_changes_nothing(self):
        copy_heddle(self.path("bare"))
        r = subprocess.run([self.path("bare", "bin", "heddle"), "run", "--print-env"],
                           env=clean_environment(), capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertNotIn("LD_AUDIT", r.stdout)


class Own(Runtime):
    """heddle's in place of NVIDIA's."""

    def test_whatever_the_program_was_linked_with(self):
        for name in ("none", "runpath", "rpath"):
            self.check(["heddle 92"], "--cudart", "own", self.at(name))
        self.check(["heddle 92"], "--cudart", "own", self.at("none"),
                   LD_LIBRARY_PATH=self.at("nvidia"))

    def test_a_renamed_runtime_of_a_wheel(self):
        self.check(["nvidia 91.0"], self.at("renamed"))
        self.check(["heddle 91.0"], "--cudart", "own", self.at("renamed"))

    def test_one_runtime_under_several_names(self):
        self.check(["nvidia 91.0"], self.at("names"))
        self.check(["heddle 91.0"], "--cudart", "own", self.at("names"))
        self.check(["heddle 91.0", "heddle 91.0", "heddle 91.0"], "--cudart", "own",
                   self.at("names"), "libcudart.3eda8113.so.91.0", self.at("libsecond.so"))
        self.check(["heddle 91.0"] * 3, "--cudart", "own", self.at("plain"), "libcudart.so.91.0",
                   self.at("libfirst.so"), self.at("libsecond.so"))

    def test_one_runtime_under_several_names_that_are_missing(self):
        folder = self.path("bare")
        os.mkdir(folder)
        for name in ("libfirst.so", "libsecond.so", "names"):
            shutil.copy(self.at(name), folder)
        os.rename(self.at("wheel"), self.at("gone"))
        try:
            self.check(["heddle 91.0"], os.path.join(folder, "names"), LD_LIBRARY_PATH=folder)
        finally:
            os.rename(self.at("gone"), self.at("wheel"))

    def test_names_and_paths_that_are_opened_later(self):
        self.check(["heddle 93"] * 4, "--cudart", "own", self.at("plain"),
                   self.at("nvidia", "libcudart.so.93"), self.at("nvidia", "libcudart.so"),
                   "libcudart.so.93", self.at("libnear.so"))
        self.check(["heddle 93"] * 2, "--cudart", "own", self.at("plain"), "libcudart.so",
                   "$ORIGIN/nvidia/libcudart.so.93", LD_LIBRARY_PATH=self.at("nvidia"))

    def test_a_path_that_does_not_exist_is_not_replaced(self):
        self.check(["none"], "--cudart", "own", self.at("plain"),
                   self.at("nowhere", "libcudart.so.93"))

    def test_python_opens_it_by_path_before_a_library_needs_it(self):
        script = ("import ctypes, sys\n"
                  "ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)\n"
                  "f = ctypes.CDLL(sys.argv[2]).cudaStandIn\n"
                  "f.restype = ctypes.c_char_p\n"
                  "print(f().decode())\n"
                  "maps = open('/proc/self/maps').read()\n"
                  "print({line.split()[-1] for line in maps.split('\\n') if 'libcudart' in line\n"
                  "       and not 'libheddle' in line})\n")
        ours = self.at("prefix", "lib", "heddle", "cudart", "libcudart.so.93")
        self.check(["heddle 93", str({ours})], "--cudart", "own", PYTHON, "-c", script,
                   self.at("nvidia", "libcudart.so.93"), self.at("libnear.so"))

    def test_each_runtime_that_heddle_lacks_is_named_once(self):
        self.check([f"nvidia {n}" for n in ("90.1", "90.2", "90.1", "90.2")], "--cudart", "own",
                   self.at("plain"),
                   *[self.at("nvidia", f"libcudart.so.{n}")
                     for n in ("90.1", "90.2", "90.1", "90.2")],
                   says="".join(f"heddle: warning: --cudart own: heddle has no libcudart.so.{n}; "
                                "the program gets the one that it finds\n"
                                for n in ("90.1", "90.2")))

    def test_the_setting_can_come_from_a_file_or_a_variable(self):
        conf = self.write("heddle.conf", "cudart = own\n")
        self.check(["heddle 92"], "--config", conf, self.at("runpath"))
        self.check(["heddle 92"], self.at("runpath"), HEDDLE_CUDART="own")

    def test_a_program_with_a_sanitizer(self):
        try:
            self.link("sanitized", "92", "-fsanitize=address", "-Wl,-rpath," + self.at("nvidia"))
        except subprocess.CalledProcessError:
            self.skipTest("the compiler has no AddressSanitizer")
        self.check(["heddle 92", "heddle 93"], "--cudart", "own", self.at("sanitized"),
                   "libcudart.so.93",
                   ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")

    def test_thread_local_storage_of_libraries_that_are_opened_later(self):
        """Libraries like libgomp need room that the loader keeps for them."""
        lib = compile_c(self.path("libtls.so"), ROOM, "-shared", "-fPIC")
        self.check(["room", "heddle 92"], "--cudart", "own", self.at("plain"), lib,
                   "libcudart.so.92")

    def test_a_program_under_valgrind(self):
        if not shutil.which("valgrind"):
            self.skipTest("no valgrind")
        r = self.run_copy("--cudart", "own", "valgrind", "-q", self.at("runpath"))
        self.assertEqual((r.returncode, r.stdout), (0, "heddle 92\n"), r.stderr)

    def test_no_runtimes_is_an_error(self):
        copy_heddle(self.path("bare"))
        r = subprocess.run([self.path("bare", "bin", "heddle"), "run", "--cudart", "own", "true"],
                           env=clean_environment(), capture_output=True, text=True)
        self.assertEqual(r.returncode, 125)
        self.assertIn("there are no CUDA runtimes of heddle's in", r.stderr)


class Nvidia(Runtime):
    """Never heddle's."""

    def test_a_program_that_finds_one_keeps_it(self):
        self.check(["nvidia 92", "nvidia 93"], "--cudart", "nvidia", self.at("runpath"),
                   self.at("libnear.so"))

    def test_a_program_that_finds_none_does_not_start(self):
        r = self.run_copy("--cudart", "nvidia", self.at("none"))
        self.assertEqual(r.returncode, 127)
        self.assertIn("libcudart.so.92: cannot open shared object file", r.stderr)
        self.check(["none"], "--cudart", "nvidia", self.at("plain"), "libcudart.so.92",
                   LD_LIBRARY_PATH=self.at("prefix", "lib", "heddle", "cudart"))


class Together(Runtime):
    """With other options, and heddle in heddle."""

    def heddle_lines(self, *args, **env):
        r = self.run_copy(*args, "--print-env", **env)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def test_the_inner_setting_wins(self):
        inner = self.at("prefix", "bin", "heddle")
        for outer, mode, expected in (("own", "auto", "nvidia 92"), ("auto", "own", "heddle 92"),
                                      ("own", "nvidia", "nvidia 92"), ("own", None, "heddle 92")):
            words = ["--cudart", mode] if mode else []
            self.check([expected], "--cudart", outer, inner, "run", *words,
                       self.at("runpath"))

    def test_other_audit_libraries_are_kept(self):
        text = self.heddle_lines("--cudart", "own", LD_AUDIT="/a/b.so")
        self.assertIn("/libheddle-cudart-own.so:/a/b.so'\n", text)
        ours = self.at("prefix", "lib", "heddle", "libheddle-cudart-own.so")
        self.assertIn("export LD_AUDIT='/a/b.so'\n",
                      self.heddle_lines("--cudart", "nvidia", LD_AUDIT=f"/a/b.so:{ours}"))

    def test_the_program_keeps_its_own_where_heddle_only_injects_or_may_not_audit(self):
        words = ("--inject", "--sched", "on")
        self.assertNotIn("LD_AUDIT", self.heddle_lines(*words))
        self.assertNotIn("LD_AUDIT", self.heddle_lines("--no-preload"))
        for option in (words, ("--no-preload",)):
            r = self.run_copy("--cudart", "own", *option, "true")
            self.assertEqual(r.returncode, 2)
            self.assertIn("leave out --cudart own", r.stderr)

    def test_bad_words_are_refused(self):
        r = self.run_copy("--cudart", "heddle", "true")
        self.assertEqual(r.returncode, 2)
        self.assertIn("--cudart: 'heddle' is neither auto, own nor nvidia", r.stderr)

    def test_the_doctor_says_which_runtime_programs_get(self):
        for mode, says in (("auto", "or heddle's if it finds none: 91.0 92 93"),
                           ("own", "heddle's in place of NVIDIA's: 91.0 92 93"),
                           ("nvidia", "never heddle's")):
            r = subprocess.run([self.at("prefix", "bin", "heddle"), "doctor", "--json"],
                               env=clean_environment(HEDDLE_CUDART=mode), capture_output=True,
                               text=True, timeout=PATIENCE)
            [text] = [f["text"] for f in json.loads(r.stdout)["findings"]
                      if f["name"] == "CUDA runtime"]
            self.assertTrue(text.startswith(mode + ": "), text)
            self.assertIn(says, text)

    def test_nothing_is_hooked_that_would_cost_time_later(self):
        if not shutil.which("nm"):
            self.skipTest("no nm")
        for mode in ("auto", "own"):
            r = subprocess.run(["nm", "-D", "--defined-only", "--format=just-symbols",
                                os.path.join(LIBDIR, f"libheddle-cudart-{mode}.so")],
                               capture_output=True, text=True, check=True)
            self.assertEqual(r.stdout.split(), ["la_objopen", "la_objsearch", "la_version"])


if __name__ == "__main__":
    sys.exit(unittest.main())
