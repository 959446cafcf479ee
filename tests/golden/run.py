#!/usr/bin/env python3
"""Tests of the generator: `run.py [--update]`.

The output for tiny.py is compared with expected/, which is committed so that a changed emitter
shows in the diff; --update rewrites it. Bad specs must fail and say where and why.
"""

import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))
EXPECTED = HERE / "expected"
CC = os.environ.get("HED_CC", "cc")
CFLAGS = shlex.split(os.environ.get("HED_CFLAGS", "-Wall -Wextra -Wno-unused-parameter"))


def emit(spec, out, *more):
    """Runs the generator as the build does."""
    return subprocess.run([sys.executable, "-B", ROOT / "gen/emit.py", "--spec", spec, "--out", out,
                           *more], capture_output=True, text=True)


def names(folder):
    return sorted(p.name for p in Path(folder).iterdir())


class Output(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.out = Path(self.tmp.name) / "gen"
        self.addCleanup(self.tmp.cleanup)
        done = emit(HERE / "tiny.py", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_output_is_as_expected(self):
        self.assertEqual(names(self.out), names(EXPECTED))
        diffs = []
        for name in names(self.out):
            old, new = (EXPECTED / name).read_text(), (self.out / name).read_text()
            diffs += difflib.unified_diff(old.splitlines(), new.splitlines(), f"expected/{name}",
                                          f"now/{name}", lineterm="")
        if diffs:
            self.fail("the emitters changed (run.py --update takes it over):\n" + "\n".join(diffs))

    def test_one_emitter_makes_its_own_files_only(self):
        some = Path(self.tmp.name) / "some"
        self.assertEqual(emit(HERE / "tiny.py", some, "--only", "abi,doc").returncode, 0)
        self.assertEqual(names(some), ["tiny_abi.h", "tiny_calls.md", "wire_tiny.md"])
        done = emit(HERE / "tiny.py", some, "--only", "poetry")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("poetry", done.stderr)

    def test_unchanged_files_keep_their_time(self):
        for p in self.out.iterdir():
            os.utime(p, (1, 1))
        (self.out / "tiny_abi.h").write_text("old")
        self.assertEqual(emit(HERE / "tiny.py", self.out).returncode, 0)
        touched = [p.name for p in self.out.iterdir() if p.stat().st_mtime != 1]
        self.assertEqual(touched, ["tiny_abi.h"])

    def compile(self, source):
        """With the headers of src/, except for those that name the real APIs."""
        done = subprocess.run(
            [CC, "-std=gnu17", "-D_GNU_SOURCE", *CFLAGS, "-Werror", "-fsyntax-only",
             f"-I{self.tmp.name}", f"-I{ROOT}/src", source],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{source}: {done.stderr}")

    def test_output_compiles(self):
        for name, text in STAND_INS.items():
            path = Path(self.tmp.name) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("#pragma once\n" + text)
        for name in names(self.out):
            if name.endswith(".c") and name != "tiny_check_nvidia.c":
                self.compile(self.out / name)
        for name in names(self.out):
            if name.endswith(".h"):
                alone = Path(self.tmp.name) / "alone.c"
                alone.write_text(f'#include "gen/{name}"\nextern int nothing;\n')
                self.compile(alone)

    def test_prototypes_equal_a_header_of_the_same_api(self):
        """tiny_check_nvidia.c with a header that agrees, and with one that does not."""
        header = (self.out / "tiny_front.h").read_text()
        (Path(self.tmp.name) / "tiny.h").write_text(header)
        self.compile(self.out / "tiny_check_nvidia.c")
        (Path(self.tmp.name) / "tiny.h").write_text(
            header.replace("tinyClose(tinyThing thing)", "tinyClose(int thing)"))
        with self.assertRaises(AssertionError) as caught:
            self.compile(self.out / "tiny_check_nvidia.c")
        self.assertIn("tinyClose", str(caught.exception))


RUNTIME_FILES = ("cudart_12.map", "cudart_13.exports", "cudart_abi.h", "cudart_api_12.h",
                 "cudart_calls.h", "cudart_calls.md", "cudart_check_12.c", "cudart_errors.c",
                 "cudart_front_12.c", "cudart_front_13.c", "cudart_front_8.0.c")
EXPECTED_RUNTIME = HERE / "expected_runtime"


def emit_runtime(spec, out):
    """Runs the generator of the runtime API as the build does, over the real driver API."""
    return subprocess.run([sys.executable, "-B", ROOT / "gen/emit_runtime.py", "--cuda",
                           ROOT / "spec/cuda", "--spec", spec, "--out", out],
                          capture_output=True, text=True)


class Runtime(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.out = Path(self.tmp.name) / "gen"
        self.addCleanup(self.tmp.cleanup)

    def test_output_is_as_expected(self):
        done = emit_runtime(HERE / "cudart.py", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        diffs = []
        for name in RUNTIME_FILES:
            old, new = (EXPECTED_RUNTIME / name).read_text(), (self.out / name).read_text()
            diffs += difflib.unified_diff(old.splitlines(), new.splitlines(), f"expected/{name}",
                                          f"now/{name}", lineterm="")
        if diffs:
            self.fail("the emitter changed (run.py --update takes it over):\n" + "\n".join(diffs))

    def test_bad_calls_are_refused(self):
        good = (HERE / "cudart.py").read_text()
        for line, reason in (
                ('call("cudaBad", driver="cuNoSuchCall")', "cudaBad: driver='cuNoSuchCall': no such"),
                ('call("cudaBad", driver="cuStreamCreate")', "takes 2 arguments, not 0"),
                ('call("cudaBad", In(I32, "x"), driver="cuInit(y)")', "'y' is no argument"),
                ('call("cudaBad", In(I32, "x"))', "say one of driver=, by_hand= and missing="),
                ('call("cudaBad", by_hand=True, missing="x")', "say one of"),
                ('call("cudaBad", by_hand=True, editions="9..")', "is no range of editions"),
                ('call("cudaTinyCopy", by_hand=True)', "described twice for one edition"),
                ('call("cudaBad", 3, by_hand=True)', "an argument must be"),
                ('without_context("cudaBad*")', "matches no call"),
                ('without_context("cudaTinyNew", editions="..12")', "matches no call")):
            path = Path(self.tmp.name) / "cudart.py"
            path.write_text(good + line + "\n")
            done = emit_runtime(path, self.out)
            self.assertEqual(done.returncode, 1, line)
            self.assertIn(reason, done.stderr)
            self.assertIn(f"cudart.py:{good.count(chr(10)) + 1}: ", done.stderr)


# Headers that name the real APIs, with the tiny one in their place.
STAND_INS = {
    "core/layer.h": """
#include "core/export.h"
#include "gen/tiny_calls.h"
#define HED_TINY_OK TINY_OK
#define HED_TINY_BAD_VALUE TINY_BAD_VALUE
#define HED_TINY_UNSUPPORTED TINY_BROKEN
struct hed_layer_type {
    tinyResult (*tiny_any)(struct hed_layer *, enum hed_tiny_call, void *);
};
struct hed_layer {
    const struct hed_tiny_ops *tiny;
    struct hed_layer *next;
    const struct hed_layer_type *type;
};
tinyResult hed_tiny_invoke(struct hed_layer *, enum hed_tiny_call, void *);
tinyResult hed_tiny_no_such_call(enum hed_tiny_call);
tinyResult hed_tiny_not_in_driver(struct hed_layer *, enum hed_tiny_call);
extern const struct hed_tiny_ops hed_tiny_forward, hed_tiny_any;
""",
    "core/stats.h": """
#define HED_API_TINY 0
void hed_stats_unsupported(int api, uint32_t id, const char *who);
""",
    "core/session.h": """
struct hed_layer *hed_top(void);
""",
    "backends/null/null.h": """
#include <stddef.h>
#include "gen/tiny_calls.h"
#define HED_NULL_OBJECT 0x100000ull
extern const struct hed_tiny_ops hed_tiny_null;
uint64_t hed_null_mint(struct hed_layer *self);
void hed_null_clear(void *p, uint64_t count, size_t size);
""",
    "gen/cuda_abi.h": """
typedef unsigned long long cuuint64_t;
typedef int CUdriverProcAddressQueryResult;
""",
}

GOOD = """\
api(prefix="t", result="tResult", headers=["t.h"], after="none")
enum("tResult", T_OK=0)
handle("tThing", "thing")
"""

# name: (text after GOOD, words that the message must contain). The text begins in line 4.
BAD = {
    "length_of_nothing": ('call("tA", In(Array(U32, "n"), "p"))',
                          ["bad.py:4", "tA", "p", "length uses 'n', which is no argument"]),
    "length_of_a_handle": ('call("tA", In(Array(U32, "h"), "p"), In(tThing, "h"))',
                           ["bad.py:4", "tA", "p", "'h', which is no number"]),
    "length_of_itself": ('call("tA", In(Array(U32, "p"), "p"))', ["bad.py:4", "tA", "p"]),
    "length_on_a_later_line": ('\n\ncall("tA",\n     In(U32, "n"),\n     In(Bytes("m"), "p"))',
                               ["bad.py:8", "tA", "p", "'m'"]),
    "two_arguments_of_one_name": ('call("tA", In(U32, "n"), In(U32, "n"))',
                                  ["bad.py:4", "tA", "n", "two arguments of one name"]),
    "described_twice": ('call("tA")\ncall("tA")', ["bad.py:5", "tA", "described twice"]),
    "type_described_twice": ('enum("tE", A=1)\nalias("tE", U32)',
                             ["bad.py:5", "tE", "described twice"]),
    "unknown_type": ('call("tA", In(tNothing, "n"))', ["bad.py:4", "tNothing"]),
    "not_a_type": ('call("tA", In("U32", "n"))', ["bad.py:4", "tA", "n", "not a type"]),
    "not_an_argument": ('call("tA", U32)', ["bad.py:4", "tA", "must be In, Out or InOut"]),
    "no_such_kind": ('call("tA", Out(tThing, "t", new="dog"))',
                     ["bad.py:4", "tA", "t", "no handle of kind 'dog'"]),
    "free_of_no_kind": ('call("tA", In(tThing, "t", free="dog"))',
                        ["bad.py:4", "tA", "t", "no handle of kind 'dog'"]),
    "opt_of_a_number": ('call("tA", In(U32, "n", opt=True))',
                        ["bad.py:4", "tA", "n", "opt= is for pointers"]),
    "text_buffer_goes_in": ('call("tA", In(TextBuf("n"), "p"), In(U32, "n"))',
                            ["bad.py:4", "tA", "p", "TextBuf is for Out"]),
    "tag_of_nothing": ('union("tU", F(U32, "a"), cases={1: "a"})\n'
                       'call("tA", In(Ref(tU), "u", tag="k"))',
                       ["bad.py:5", "tA", "u", "tag 'k' is no argument"]),
    "tag_after_its_union": ('union("tU", F(U32, "a"), cases={1: "a"})\n'
                            'call("tA", In(Ref(tU), "u", tag="k"), In(U32, "k"))',
                            ["bad.py:5", "tA", "u", "tag 'k' must come first"]),
    "field_length_of_nothing": ('struct("tS", F(Array(U32, "n"), "p"))',
                                ["bad.py:4", "tS", "p", "length uses 'n', which is no field"]),
    "field_tag_of_nothing": ('union("tU", F(U32, "a"), cases={1: "a"})\n'
                             'struct("tS", F(tU, "u", tag="k"))',
                             ["bad.py:5", "tS", "u", "tag 'k' is no field"]),
    "case_of_nothing": ('union("tU", F(U32, "a"), cases={1: "b"})',
                        ["bad.py:4", "tU", "case 'b' is no field"]),
    "union_tag_of_nothing": ('union("tU", F(U32, "a"), tag="b", cases={1: "a"})',
                             ["bad.py:4", "tU", "tag 'b' is no field"]),
    "not_a_field": ('struct("tS", U32)', ["bad.py:4", "tS", "F(type, name)"]),
    "field_of_no_type": ('struct("tS", F(3, "x"))', ["bad.py:4", "tS", "x", "not a type"]),
    "enum_of_text": ('enum("tE", A="1")', ["bad.py:4", "tE", "A", "must be a number"]),
    "syntax": ('call("tA"', ["bad.py:4"]),
    "wrong_word": ('cal("tA")', ["bad.py:4", "cal"]),
    "after_of_no_kind": ('call("tA", after="sideways")', ["bad.py:4", "tA", "sideways"]),
    "stream_of_nothing": ('call("tA", stream="s.x")', ["bad.py:4", "tA", "'s' is no pointer"]),
    "stream_of_no_field": ('struct("tS", F(U32, "x"))\n'
                           'call("tA", In(Ref(tS), "s"), stream="s.y")',
                           ["bad.py:5", "tA", "no field 'y'"]),
    "failure_of_no_kind": ('call("tA", Out(U32, "n", on=["T_OK"]))',
                           ["bad.py:4", "tA", "n", "'T_OK' is no failure"]),
    "failure_that_goes_in": ('call("tA", In(U32, "n", on="failure"))',
                             ["bad.py:4", "tA", "n", "single values that come out"]),
    "failure_with_an_array": ('call("tA", Out(Array(U32, "n"), "p", on="failure"), In(U32, "n"))',
                              ["bad.py:4", "tA", "p", "single values that come out"]),
    "nobody_says_what_it_does": ('call("tA", after="all")',
                                 ["bad.py:4", "tA", "does not say what it does", '"launch"',
                                  "docs/internals/gen.md"]),
    "does_what": ('call("tA", does="dance")', ["bad.py:4", "tA", "'dance' is none of launch"]),
    "makes_nothing": ('call("tA", does="make")', ["bad.py:4", "tA", "no argument says new="]),
    "ends_nothing": ('call("tA", does="end")', ["bad.py:4", "tA", "no argument says free="]),
    "captures_nothing": ('call("tA", does="begin_capture")',
                         ["bad.py:4", "tA", "has no stream"]),
    "begins_a_context_nowhere": ('call("tA", does="begin_context")',
                                 ["bad.py:4", "tA", "on which device by about="]),
    "about_nothing": ('call("tA", about="n")', ["bad.py:4", "tA", "'n' is no argument"]),
    "about_a_pointer": ('call("tA",\n     Out(U32, "n"), about="n")',
                        ["bad.py:4", "tA", "n", "this is a pointer"]),
    "size_of_nothing": ('call("tA", does="copy", size="n")',
                        ["bad.py:4", "tA", "'n', which is no argument"]),
    "size_of_a_pointer": ('call("tA",\n     Out(U32, "n"), does="copy", size="n")',
                          ["bad.py:5", "tA", "n", "it is a pointer"]),
    "size_of_no_field": ('struct("tS", F(U32, "x"))\n'
                         'call("tA", In(Ref(tS), "s"), does="launch", size="s.y")',
                         ["bad.py:5", "tA", "s", "'s.y': no such field"]),
    "size_of_no_work": ('call("tA", In(U32, "n"), does="set", size="n")',
                        ["bad.py:4", "tA", "size= is for calls that do launch"]),
    "deferred_without_a_stream": ('call("tA", does="copy", defer=True)',
                                  ["bad.py:4", "tA", "defer= is for work on a stream"]),
    "extent_of_a_number": ('call("tA",\n     In(U32, "n", extent="4"))',
                           ["bad.py:5", "tA", "n", "extent= is for addresses"]),
    "extent_of_nothing": ('call("tA", In(PTR, "p", extent="n"))',
                          ["bad.py:4", "tA", "p", "'n', which is no number"]),
    "extent_without_a_pitch": ('call("tA", In(PTR, "p", extent=Span("4", "2")))',
                               ["bad.py:4", "tA", "p", "needs a pitch"]),
    "travels_somehow": ('call("tA", travel="quickly")', ["bad.py:4", "tA", "travel= is Roles("]),
    "travels_with_an_address": ('call("tA", In(CPTR, "p"), travel=True)',
                                ["bad.py:4", "tA", "an address of the program's own"]),
    "travels_and_stays": ('call("tA", travel=True)\nlocal("it is shy", "tA")',
                          ["bad.py:4", "tA", "it is shy"]),
    "reaches_who_knows_where": ('call("tA",\n     In(DPTR, "p"), travel=True)',
                                ["bad.py:5", "tA", "p", "extent=", "travel=Roles"]),
    "reaches_in_a_struct": ('struct("tS", F(DPTR, "p"))\n'
                            'call("tA", In(Ref(tS), "s"), travel=True)',
                            ["bad.py:5", "tA", "s", "travel=Roles"]),
    "memory_that_nobody_counts": ('device_memory(["thing"], [])\n'
                                  'call("tA", Out(tThing, "t", new="thing"), does="make")',
                                  ["bad.py:5", "tA", "memory=", "uncounted()"]),
    "a_name_that_nobody_counts": ('device_memory([], ["A"])\ncall("tA")',
                                  ["bad.py:5", "tA", "memory=", "uncounted()"]),
    "memory_of_no_kind": ('device_memory(["dog"], [])', ["bad.py:4", "dog"]),
    "counted_and_not": ('call("tA", memory=Roles("some"))\nuncounted("no", "tA")',
                        ["bad.py:5", "tA", "says memory="]),
    "memory_without_roles": ('call("tA", memory=True)', ["bad.py:4", "tA", "memory= is Roles("]),
    "a_role_for_no_argument": ('call("tA", memory=Roles("some", bytes="cuont"))',
                               ["bad.py:4", "tA", "memory=", "cuont"]),
    "a_role_for_no_pointer": ('call("tA", In(U32, "n"), memory=Roles("some", out="*n"))',
                              ["bad.py:4", "tA", "*n", "no pointer"]),
    "a_role_for_no_field": ('struct("tS", F(U32, "n"))\n'
                            'call("tA", In(Ref(tS), "s"), memory=Roles("some", n="s.m"))',
                            ["bad.py:5", "tA", "s.m", "no field 'm'"]),
    "a_null_answer_to_nothing": ('call("tA", In(U32, "n"), null={"n": 1})',
                                 ["bad.py:4", "tA", "null=", "no output"]),
    "uncounted_twice": ('call("tA")\nuncounted("no", "tA", "tA")',
                        ["bad.py:5", "tA", "named twice"]),
    "uncounted_nothing": ('uncounted("no", "tA")', ["bad.py:4", "tA", "no such call"]),
    "area_of_nothing": ('area("sea", "tB*")', ["bad.py:4", "sea", "the area of no call"]),
    "no_area": ('call("tA")\ncall("tB")\narea("sea", "tB")', ["bad.py:4", "tA", "in no area"]),
    "local_of_nothing": ('local("no", "tB*")', ["bad.py:4", "tB*", "matches no call"]),
    "when_of_nothing": ('struct("tS", F(U32, "a", when=("b", 1)))',
                        ["bad.py:4", "tS", "a", "'b', which is no field"]),
    "arithmetic": ('const("tC", 1 // 0)', ["bad.py:4"]),
    "wrong_option": ('call("tA", colour=1)', ["bad.py:4", "colour"]),
    "pointers_in_a_union_before_its_tag": (
        'struct("tD", F(Ref(U32), "p"))\nstruct("tS",\n       F(inner("union", F(tD, "d"), '
        'F(U64, "w"), cases={1: "d"}), "u", tag="k"),\n       F(U32, "k"))\n'
        'call("tA", In(Ref(tS), "s"))',
        ["bad.py:6", "tS", "u", "'k' must come first"]),
}


class BadSpecs(unittest.TestCase):
    def refuse(self, text, ids, words):
        with tempfile.TemporaryDirectory() as tmp:
            spec = Path(tmp) / "bad.py"
            spec.write_text(text)
            spec.with_suffix(".ids").write_text(ids)
            done = emit(spec, Path(tmp) / "out")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertFalse((Path(tmp) / "out").exists())

    def test_a_good_spec_is_accepted(self):
        with tempfile.TemporaryDirectory() as tmp:
            spec = Path(tmp) / "good.py"
            spec.write_text(GOOD + 'call("tA")\n')
            spec.with_suffix(".ids").write_text("1 tA\n")
            done = emit(spec, tmp)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_bad_descriptions(self):
        for name, (text, words) in BAD.items():
            with self.subTest(name):
                ids = "1 tA\n2 tB\n" if '"tB")' in text else "1 tA\n"
                self.refuse(GOOD + text + "\n", ids, words)

    def test_no_api_line(self):
        self.refuse('enum("tResult", T_OK=0)\n', "", ["bad.py:1", "api()"])
        self.refuse('api(prefix="t", result="tNone", headers=[])\n', "", ["bad.py:1", "api()"])

    def test_bad_numbers(self):
        two = GOOD + 'call("tA")\ncall("tB")\n'
        rows = {
            "missing": ("1 tA\n", ["bad.py:5", "tB", "no number in bad.ids"]),
            "reused": ("1 tA\n1 tB\n", ["bad.ids:2", "tB", "used twice"]),
            "two numbers": ("1 tA\n2 tB\n3 tA\n", ["bad.ids:3", "tA", "used twice"]),
            "of no call": ("1 tA\n2 tB\n3 tC\n", ["bad.ids", "tC", "no call of that name"]),
            "no number": ("1 tA\nx tB\n", ["bad.ids:2", "NUMBER NAME"]),
            "no name": ("1 tA\n2\n", ["bad.ids:2", "NUMBER NAME"]),
            "negative": ("1 tA\n-2 tB\n", ["bad.ids:2", "NUMBER NAME"]),
            "zero": ("0 tA\n1 tB\n", ["bad.ids:1", "tA"]),
            "too large": ("1 tA\n65536 tB\n", ["bad.ids:2", "tB"]),
            "a gap": ("1 tA\n3 tB\n", ["bad.ids", "2"]),
        }
        for name, (ids, words) in rows.items():
            with self.subTest(name):
                self.refuse(two, ids, words)


def pairs(text):
    """number -> name of an .ids file."""
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    return {int(words[0]): words[1] for words in lines if words}


class Hash(unittest.TestCase):
    """A changed encoding changes the hash; a changed name of an argument does not."""

    def of(self, text, ids="1 tA\n"):
        with tempfile.TemporaryDirectory() as tmp:
            spec = Path(tmp) / "good.py"
            spec.write_text(GOOD + text + "\n")
            spec.with_suffix(".ids").write_text(ids)
            done = emit(spec, tmp, "--only", "hash")
            self.assertEqual(done.returncode, 0, done.stderr)
            return (Path(tmp) / "good_hash.h").read_text()

    def test_the_hash_depends_on_shapes_and_not_on_names(self):
        old = self.of('call("tA", In(U32, "n"), In(Array(U32, "n"), "p"))')
        self.assertEqual(old, self.of('call("tA", In(U32, "m"), In(Array(U32, "m"), "q"))'))
        for other in ('call("tA", In(U64, "n"), In(Array(U32, "n"), "p"))',
                      'call("tA", In(U32, "n"), In(Array(U32, "n + 1"), "p"))',
                      'call("tA", In(U32, "n"), In(Array(U32, "n"), "p"), ptds=True)',
                      'call("tA", In(U32, "n"), InOut(Array(U32, "n"), "p"))',
                      'call("tA", In(U32, "n"), In(Array(tThing, "n"), "p"))'):
            self.assertNotEqual(old, self.of(other), other)
        self.assertNotEqual(old, self.of(
            'call("tB", In(U32, "n"), In(Array(U32, "n"), "p"))', "1 tB\n"))
        one = self.of('struct("tS", F(U32, "a"), F(U8, "b"))\ncall("tA", In(Ref(tS), "s"))')
        self.assertNotEqual(one, self.of(
            'struct("tS", F(U32, "a"), F(U16, "b"))\ncall("tA", In(Ref(tS), "s"))'))
        self.assertEqual(one, self.of(
            'struct("tS", F(U32, "c"), F(U8, "b"))\ncall("tA", In(Ref(tS), "s"))'))


class Numbers(unittest.TestCase):
    """spec/*.ids is append-only: every line that was ever committed is still there."""

    def git(self, *args):
        if not shutil.which("git"):
            self.skipTest("git is not installed")
        done = subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True)
        if done.returncode:
            self.skipTest(f"no git history here: {done.stderr.strip()[:100]}")
        return done.stdout

    def test_numbers_never_change(self):
        if not (ROOT / ".git").exists():
            self.skipTest("not a git checkout")
        for path in sorted((ROOT / "spec").glob("*.ids")):
            now = pairs(path.read_text())
            for commit in self.git("log", "--format=%H", "--", f"spec/{path.name}").split():
                for number, name in pairs(self.git("show", f"{commit}:spec/{path.name}")).items():
                    self.assertEqual(now.get(number), name,
                                     f"{path.name}: {number} was {name} in {commit[:10]}")

    def test_numbers_are_dense(self):
        """The operation tables are searched by number: entry i is call i + 1."""
        for path in sorted((ROOT / "spec").glob("*.ids")):
            numbers = sorted(pairs(path.read_text()))
            self.assertEqual(numbers, list(range(1, len(numbers) + 1)), path.name)


class Classified(unittest.TestCase):
    """The generator refuses calls that do not say what they do. These tests check what they say."""

    def setUp(self):
        from gen.vocabulary import load
        self.calls = load(ROOT / "spec/cuda").calls

    def test_calls_that_sound_like_work_are_work(self):
        sounds = {"launch": r"cuLaunch|cuGraphLaunch", "copy": r"cuMemcpy", "fill": r"cuMemset"}
        for does, pattern in sounds.items():
            for c in self.calls:
                if re.match(pattern, c.name) and c.name != "cuLaunchHostFunc":
                    self.assertEqual(c.effects.does, does, f"{c.where}: {c.name}")

    def test_calls_that_wait_say_so(self):
        for c in self.calls:
            if re.search(r"Synchronize", c.name):
                self.assertEqual(c.effects.does, "wait", f"{c.where}: {c.name}")

    def test_work_on_a_stream_is_no_property_of_it(self):
        """Every call with a stream puts work on it, except calls about the stream itself."""
        for c in self.calls:
            if c.stream and c.effects.does in ("make", "end", "set", "ask"):
                self.assertRegex(c.name, "^cuStream|^cuGraphInstantiate", c.where)


class Wire(unittest.TestCase):
    def test_kinds_are_those_of_the_page(self):
        """The table of docs/wire.md and enum hed_msg_kind have the same names and numbers."""
        header = (ROOT / "src/remote/wire/wire.h").read_text()
        body = re.search(r"enum hed_msg_kind \{(.*?)\};", header, re.S).group(1)
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        kinds = [w.strip().removeprefix("HED_MSG_") for w in body.split(",") if w.strip()]
        self.assertEqual(kinds.pop(), "KINDS")
        page = (ROOT / "docs/wire.md").read_text()
        table = page[page.index("| no. | kind |"):].split("\n\n")[0]
        rows = [r.split("|")[1:3] for r in table.splitlines()[2:]]
        self.assertEqual([(int(n), k.strip()) for n, k in rows], list(enumerate(kinds)))
        for name in set(re.findall(r"`(hed_\w+)`", table)):
            self.assertTrue(any(f"struct {name} {{" in p.read_text()
                                for p in (ROOT / "src/remote/wire").glob("*.h")), name)

    def test_limits_are_those_of_the_page(self):
        header = (ROOT / "src/remote/wire/wire.h").read_text()
        page = (ROOT / "docs/wire.md").read_text()
        self.assertIn(re.search(r"HED_MSG_MAX (\d+)u", header).group(1) + " bytes", page)
        self.assertIn("HED_BULK_CHUNK (UINT32_C(1) << 20)", header)
        self.assertIn("a head of 64 bytes", page)
        self.assertIn("sizeof(struct hed_msg) == 64", header)


class Tree(unittest.TestCase):
    def test_generated_text_names_no_folder_of_this_machine(self):
        for path in EXPECTED.iterdir():
            self.assertIsNone(re.search(r"/(home|work|tmp|root)/", path.read_text()), path.name)


def update(folder, done, out, files):
    """Takes over what the generator made."""
    if done.returncode:
        sys.exit(done.stderr)
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name in files or names(out):
        (folder / name).write_text((Path(out) / name).read_text())


if __name__ == "__main__":
    if "--update" in sys.argv:
        with tempfile.TemporaryDirectory() as tmp:
            update(EXPECTED, emit(HERE / "tiny.py", tmp), tmp, None)
        with tempfile.TemporaryDirectory() as tmp:
            update(EXPECTED_RUNTIME, emit_runtime(HERE / "cudart.py", tmp), tmp, RUNTIME_FILES)
    else:
        unittest.main()
