"""The vocabulary of spec/sass, and the tables of the decoder that are made from it.

    field("round", 78, "", "RM", "RP", "RZ")
        Names the bits from 78 on; as many as the spellings need. A value without a spelling is
        reserved, the spelling "" is not written.
    memory("shared", reg=24, scale=78, ur=32, offset=(40, 24))
        An address in brackets.
    op(0x023, "2 4 6 8 a c e", "FFMA.ftz.fmz.round.sat", "Rd, -|A|, -|B|, -|C|", imm="f32")
        The nine bits of the opcode; the values of bits 8..11 that occur; the name and its
        modifiers, those in lower case are fields; the operands.
    uniform_op(...)  half_op(...)
        The same for instructions on uniform registers, and on registers that hold two halves.

Operands, in the order in which they are written:

    Rd A Rb Rc          registers at 16, 24, 32, 64; R@40 is one at 40, UR@32 a uniform one
    B C                 the second and third source, wherever the form has them
    S                   the source in bits 32..63: register, immediate, constant, uniform register
    -A |A| -|A|         with bits that negate it and take the absolute value
    -~A ~A ~30:A        negated, or inverted if .X is set; inverted; inverted by bit 30
    -|A|.h              with a choice of halves; -|A|.nh is with both, one of them negative
    P@81 !P@87 UP@81    predicates; ! with a bit that inverts it, PT? not written if it is PT
    #40:24 #s40:24      an immediate of 24 bits at 40, unsigned or signed
    {special}           the spelling of a field, as an operand
    "PR"                a word
    [shared]            an address
    desc[24] gdesc[24]  a descriptor in the uniform register at 24; gdesc[24].how with a field
    c[...]              a constant with an index register
    lut                 the table of PLOP3, in two pieces
    ->34:48 abs34:48    the target of a branch, relative or absolute; by34:48 is a distance;
                        + writes it after the operand before, without a comma; in ->>34:48 and
                        by>34:48 its eight lowest bits are at 16
    (x)P@87 (!x)P@87    only if the field is not 0, or 0; (x=3) if it is 3

A line of op() with when="field=value ..." counts only for those instructions and is tried first.
With since= and until= it counts only for those architectures: archs(until=75) in front of lines
says so for all that follow, archs() ends it.
"""

import argparse
import functools
import re
import sys
import traceback
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gen.writer import Writer, write_files  # noqa: E402

KINDS = ["END", "WORD", "CHOICE", "REG", "UREG", "PRED", "UPRED", "BARRIER", "SCOREBOARD", "HEX",
         "SIGNED", "F32", "F64", "F16", "BF16", "CONST", "CONST_GAP", "CONST_REG", "CONST_UREG",
         "MEMORY", "DESC", "GDESC", "TARGET", "ABSOLUTE", "DISTANCE", "CHOSEN", "NAMED", "SET",
         "SPLIT"]
FLAGS = {"NOT": 1, "OPTIONAL": 2, "TILDE": 4, "X_TILDE": 8, "INSIDE": 16, "BACKWARD": 32,
         "JOINED": 64, "SPLIT": 128}
# How the registers of an address are written: with .U32 on a single register beside a uniform one;
# also on RZ; with URZ beside a pair.
STYLES = ["PLAIN", "NARROW", "NARROW_ZERO", "WITH_URZ"]
NONE = 255
ALWAYS = 254   # a bit that is always set
FORMS = {1: ("reg", "rc"), 2: ("rc", "imm"), 3: ("rc", "const"), 4: ("imm", "rc"),
         5: ("const", "rc"), 6: ("ureg", "rc"), 7: ("rc", "ureg")}
WIDTHS = {"reg": 8, "ureg": 6}


class SassError(Exception):
    pass


class Item:
    """One thing that is written: a modifier or an operand."""

    def __init__(self, kind, bit=0, width=0, **more):
        self.kind, self.bit, self.width = kind, bit, width
        self.flags = more.get("flags", 0)
        self.negate = more.get("negate", NONE)
        self.absolute = more.get("absolute", NONE)
        self.choice = more.get("choice", None)   # of halves, or of spellings
        self.reuse = more.get("reuse", NONE)
        self.words = more.get("words", None)
        self.test = more.get("test", (0, 0, 0, 0))


class Spec:
    def __init__(self):
        self.fields, self.memories, self.ops = {}, {}, []
        self.archs()

    # ---- what the files of the spec call -----------------------------------------------------

    def field(self, name, bit, *words):
        self.add_field(name, bit, max(1, (len(words) - 1).bit_length()), list(words))

    def raw(self, name, bit, width):
        """A field of numbers, for tests."""
        self.add_field(name, bit, width, [])

    def specials(self, names, others):
        """The spellings of special registers; others are written without SR_."""
        return [others.get(i) or ("SR_" + names[i] if i in names else f"SR{i}") for i in range(256)]

    def memory(self, name, reg=24, wide=NONE, scale=NONE, ur=NONE, no_ur=NONE,
               with_ur=NONE, descriptor=NONE, offset=(40, 24), style="plain"):
        """style: one of STYLES, in lower case."""
        self.memories[name] = (reg, wide, scale, ur, no_ur, with_ur, descriptor, *offset,
                               f"HED_SASS_STYLE_{style.upper()}")

    def archs(self, since=0, until=255):
        self.since, self.until = since, until

    def op(self, opcode, forms, name, operands="", imm="hex", when="", uniform=False, half=False,
           since=None, until=None):
        since = self.since if since is None else since
        until = self.until if until is None else until
        for digit in forms.split():
            value = int(digit, 16) << 8 | opcode & 0xff
            if (int(digit, 16) & 1) != opcode >> 8:
                raise SassError(f"{name}: form {digit} does not fit opcode {opcode:#x}")
            line = _Line(self, value, name, operands, imm, uniform, half)
            tests = [self.test(t) for t in when.split()]
            self.ops.append((value, name.split(".")[0], tests, line.items(forms), uniform, since,
                             until))

    def test(self, text):
        m = re.fullmatch(r"(!?)([a-z_]\w*|\d+:\d+)(?:(!?=)(\d+))?", text)
        if not m:
            raise SassError(f"not a condition: {text}")
        if ":" in m[2]:
            bit, width = map(int, m[2].split(":"))
        else:
            bit, width, _ = self.find_field(m[2])
        if m[4] is None:   # not 0, or with ! 0
            return (bit, width, 0, 0 if m[1] else 1)
        return (bit, width, int(m[4]), 1 if m[3] == "!=" else 0)

    def add_field(self, name, bit, width, words):
        if name in self.fields:
            raise SassError(f"field {name} is there twice")
        self.fields[name] = (bit, width, words)

    def find_field(self, name):
        if name not in self.fields:
            raise SassError(f"no field {name}")
        return self.fields[name]


class _Line:
    """One form of an op, parsed."""

    def __init__(self, spec, value, name, operands, imm, uniform, half):
        self.spec, self.value, self.imm, self.uniform, self.half = spec, value, imm, uniform, half
        self.name, self.operands = name, operands

    def items(self, forms):
        # An instruction with forms of the third source has its second one there, for the cache.
        self.last = bool({"4", "6"} & set(forms.split()))
        # Only arithmetic has a cache of operands.
        self.caches = not self.value & 0x100
        out = [self.modifier(m) for m in self.name.split(".")[1:]]
        return out + [self.operand(o.strip()) for o in self.operands.split(",") if o.strip()]

    def split_test(self, text):
        m = re.match(r"\(([^)]*)\)", text)
        return (text[m.end():], self.spec.test(m[1])) if m else (text, (0, 0, 0, 0))

    def modifier(self, text):
        text, test = self.split_test(text)
        if not text[0].islower():
            return Item("WORD", words=[text], test=test)
        bit, width, words = self.spec.find_field(text)
        return Item("CHOICE", bit, width, words=words, test=test)

    def operand(self, text):
        text, test = self.split_test(text)
        item = self.named(text) or self.source(text)
        if not item:
            raise SassError(f"{self.name}: not an operand: {text}")
        item.test = test
        return item

    def named(self, text):
        reg = "UREG" if self.uniform else "REG"
        if m := re.fullmatch(r"(!?)(U?P)@(\d+)(\??)(\^?)", text):
            flags = (FLAGS["NOT"] if m[1] else 0) | (FLAGS["OPTIONAL"] if m[4] else 0)
            flags |= FLAGS["BACKWARD"] if m[5] else 0
            return Item("UPRED" if self.uniform or m[2] == "UP" else "PRED", int(m[3]), 3,
                        flags=flags)
        if m := re.fullmatch(r"#(s?)(\d+):(\d+)(\??)", text):
            return Item("SIGNED" if m[1] else "HEX", int(m[2]), int(m[3]),
                        flags=FLAGS["OPTIONAL"] if m[4] else 0)
        if m := re.fullmatch(r"(->|abs|by)(>?)(\d+):(\d+)(\+?)(\??)", text):
            flags = ((FLAGS["SPLIT"] if m[2] else 0) | (FLAGS["JOINED"] if m[5] else 0) |
                     (FLAGS["OPTIONAL"] if m[6] else 0))
            return Item({"->": "TARGET", "abs": "ABSOLUTE", "by": "DISTANCE"}[m[1]], int(m[3]),
                        int(m[4]), flags=flags)
        if m := re.fullmatch(r'"(.*)"', text):
            return Item("NAMED", words=[m[1]])
        if m := re.fullmatch(r"\{(\w+)\}", text):
            bit, width, words = self.spec.find_field(m[1])
            return Item("CHOSEN", bit, width, words=words)
        if m := re.fullmatch(r"set(\d+):(\d+)", text):
            return Item("SET", int(m[1]), int(m[2]), flags=FLAGS["OPTIONAL"])
        if m := re.fullmatch(r"\[(\w+)\]", text):
            names = list(self.spec.memories)
            if m[1] not in names:
                raise SassError(f"{self.name}: no address {m[1]}")
            return Item("MEMORY", names.index(m[1]))
        if m := re.fullmatch(r"(g?desc)\[(\d+)\](?:\.(\w+))?", text):
            return Item(m[1].upper(), int(m[2]), WIDTHS["ureg"],
                        choice=self.spec.find_field(m[3]) if m[3] else None)
        if text == "lut":
            return Item("SPLIT")
        if text == "c[R]":
            return Item("CONST_REG", 38)
        if text == "c[UR]":
            return Item("CONST_UREG", 38)
        if text == "c":
            return Item("CONST", 38)
        if m := re.fullmatch(r"(B|SB)@(\d+)", text):
            return Item("BARRIER" if m[1] == "B" else "SCOREBOARD", int(m[2]),
                        4 if m[1] == "B" else 3)
        if m := re.fullmatch(r"Rd(\??)", text):
            return Item(reg, 16, 6 if self.uniform else 8,
                        flags=FLAGS["OPTIONAL"] if m[1] else 0)
        return None

    def source(self, text):
        """-|A|.h and the like."""
        m = re.fullmatch(r"(-~|-|~)?(?:(\d+):)?(\|?)(A|B|C|S|Rb|Rc|U?R@\d+)\|?"
                         r"(?:\.(\w+))?(\??)", text)
        if not m:
            return None
        sign, sign_bit, bars, what, extra, optional = m.groups()
        item, slot = self.place(what)
        if item.kind in ("REG", "UREG", "CONST", "CONST_GAP"):
            bits = {"a": (72, 73, 74), "s": (63, 62, 60),
                    "c": (84, 83, 81) if self.half else (75, 74, 0)}[slot]
            if sign:
                item.negate = int(sign_bit or bits[0])
                item.flags |= {"-": 0, "~": FLAGS["TILDE"], "-~": FLAGS["X_TILDE"]}[sign]
            if bars:
                item.absolute = bits[1]
            if extra in ("h", "nh"):
                item.choice = (bits[2], 2, ["", "F32", "H0_H0", "H1_H1"] if extra == "h" else
                               ["H0_NH1", None, None, None])
                item.flags |= 0 if item.kind == "REG" else FLAGS["INSIDE"]
            elif extra:
                item.choice = self.spec.find_field(extra)
                item.flags |= FLAGS["INSIDE"]
        if not self.caches:
            item.reuse = NONE
        if optional:
            item.flags |= FLAGS["OPTIONAL"]
        return item

    def place(self, what):
        """The item of a source, and the slot that its sign bits belong to."""
        reg, width = ("UREG", 6) if self.uniform else ("REG", 8)
        if m := re.fullmatch(r"(U?)R@(\d+)", what):
            kind = "UREG" if m[1] else "REG"
            slot = {24: "a", 64: "c"}.get(int(m[2]), "s")
            return Item(kind, int(m[2]), WIDTHS[kind.lower()]), slot
        if what == "A":
            return Item(reg, 24, width, reuse=122), "a"
        if what in ("Rb", "Rc"):
            return Item(reg, 32 if what == "Rb" else 64, width,
                        reuse=123 if what == "Rb" else 124), "s" if what == "Rb" else "c"
        b, c = FORMS[self.value >> 9]
        where = {"B": b, "C": c, "S": c if b == "rc" else b}[what]
        if where == "rc":
            return Item(reg, 64, width, reuse=123 if what == "B" else 124), "c"
        if where == "reg":
            return Item(reg, 32, width, reuse=124 if what == "S" and self.last else 123), "s"
        if where == "ureg":
            return Item("UREG", 32, 6), "s"
        if where == "const":
            return Item("CONST_GAP" if self.half else "CONST", 40), "s"
        return Item({"hex": "HEX", "signed": "SIGNED", "f32": "F32", "f64": "F64", "f16": "F16",
                     "bf16": "BF16"}[self.imm], 32, 32), "s"


def load(folder):
    folder = Path(folder)
    spec = Spec()
    space = {"field": spec.field, "raw": spec.raw, "specials": spec.specials,
             "memory": spec.memory, "op": spec.op, "archs": spec.archs, "ALWAYS": ALWAYS,
             "NONE": NONE,
             "uniform_op": functools.partial(spec.op, uniform=True),
             "half_op": functools.partial(spec.op, half=True)}
    names = {}
    exec(compile((folder / "__init__.py").read_text(), str(folder / "__init__.py"), "exec"), names)
    for name in names["FILES"]:
        path = folder / f"{name}.py"
        spec.archs()
        try:
            exec(compile(path.read_text(), str(path), "exec"), space)
        except SassError as e:
            line = next(t.lineno for t in traceback.extract_tb(e.__traceback__)
                        if t.filename == str(path))
            raise SassError(f"{path}:{line}: {e}") from None
    return spec


class _Words:
    """Lists of spellings, each list once."""

    def __init__(self):
        self.all, self.at = [], {}

    def add(self, words):
        if words is None:
            return 0
        key = tuple(words)
        if key not in self.at:
            self.at[key] = len(self.all)
            self.all += words
        return self.at[key]


def emit(spec):
    words, items, rows, tests = _Words(), [], [], []
    for value, name, when, line, uniform, since, until in sorted(
            spec.ops, key=lambda o: (o[0], -len(o[2]))):
        rows.append(f'{{"{name}", {value:#05x}, {len(tests)}, {len(when)}, {len(items)}, '
                    f"{str(uniform).lower()}, {since}, {until}}},")
        tests += when
        for i in line + [Item("END")]:
            items.append(_item_text(i, words))
    modifiers = [sum(i.kind in ("WORD", "CHOICE") for i in op[3]) for op in spec.ops]
    operands = [len(op[3]) - n for op, n in zip(spec.ops, modifiers)]
    w = Writer("The instructions of machine code.")
    w("#include <stddef.h>")
    w()
    w('#include "kernel/sass/table.h"')
    w()
    w("const char *const hed_sass_words[] = {")
    for word in words.all:
        w(f'    "{word}",' if word is not None else "    NULL,")
    w("};")
    w()
    w("const struct hed_sass_test hed_sass_tests[] = {")
    for t in tests + [(0, 0, 0, 0)]:
        w("    {%s}," % _test_text(t))
    w("};")
    w()
    w("const struct hed_sass_memory hed_sass_memories[] = {")
    for m in spec.memories.values():
        w("    {%s}," % ", ".join(map(str, m)))
    w("};")
    w()
    w("const struct hed_sass_item hed_sass_items[] = {")
    for i in items:
        w("    " + i)
    w("};")
    w()
    w("const struct hed_sass_row hed_sass_rows[] = {")
    for r in rows:
        w("    " + r)
    w("};")
    w()
    w(f"const unsigned hed_sass_row_count = {len(rows)};")
    h = Writer("The kinds of what an instruction is made of.")
    h("#pragma once")
    h()
    h("/* The most that an instruction has. */")
    h(f"#define HED_SASS_MODIFIERS {max(modifiers)}")
    h(f"#define HED_SASS_OPERANDS {max(operands)}")
    h()
    h("enum hed_sass_kind {")
    for k in KINDS:
        h(f"    HED_SASS_{k},")
    h("};")
    h()
    h("enum hed_sass_flag {")
    for k, v in FLAGS.items():
        h(f"    HED_SASS_IS_{k} = {v},")
    h("};")
    h()
    h("enum hed_sass_style {")
    for k in STYLES:
        h(f"    HED_SASS_STYLE_{k},")
    h("};")
    return {"sass_table.c": w.text(), "sass_kinds.h": h.text()}


def _item_text(i, words):
    choice = i.choice or (NONE, 0, None)
    spellings = i.words if i.words is not None else choice[2]
    return ("{HED_SASS_%s, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, {%s}}," % (
        i.kind, i.bit, i.width, i.flags, i.negate, i.absolute, choice[0], choice[1], i.reuse,
        words.add(spellings), len(spellings or []), _test_text(i.test)))


def _test_text(test):
    bit, width, value, other = test
    return f"{bit}, {width}, {str(bool(other)).lower()}, {value}"


def main():
    p = argparse.ArgumentParser(description="Makes the decoder's tables from spec/sass.")
    p.add_argument("--spec", required=True)
    p.add_argument("--out", required=True)
    args = p.parse_args()
    try:
        files = emit(load(args.spec))
    except SassError as e:
        print(e, file=sys.stderr)
        return 1
    write_files(args.out, files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
