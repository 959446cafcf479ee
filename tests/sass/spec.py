#!/usr/bin/env python3
"""Tests of gen/sass.py: a bad description of an instruction fails and names the line."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gen.sass import SassError, emit, load  # noqa: E402

GOOD = '''field("x", 74, "", "X")
memory("plain")
op(0x010, "2 8", "IADD3.x", "Rd, -~A, -~B, (x)!P@87", imm="signed")
op(0x181, "9", "LDG.64", "Rd, [plain]")
'''


class Spec(unittest.TestCase):
    def load(self, text):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "__init__.py").write_text('FILES = ["one"]')
            Path(folder, "one.py").write_text(text)
            return load(folder)

    def test_every_form_has_a_row(self):
        table = emit(self.load(GOOD))["sass_table.c"]
        for row in '{"IADD3", 0x210,', '{"IADD3", 0x810,', '{"LDG", 0x981,':
            self.assertIn(row, table)
        self.assertIn("hed_sass_row_count = 3;", table)

    def test_rows_with_conditions_come_first(self):
        ops = 'op(0x002, "2", "MOV", "Rd, S")\nop(0x002, "2", "MOV.A", "Rd", when="72:4=15")\n'
        table = emit(self.load(ops))["sass_table.c"]
        self.assertLess(table.index('"MOV", 0x202, 0, 1'), table.index('"MOV", 0x202, 1, 0'))

    def test_rows_belong_to_architectures(self):
        ops = ('archs(since=86)\nop(0x002, "2", "MOV", "Rd, S")\narchs()\n'
               'op(0x003, "8", "P2R", "Rd")\nop(0x004, "8", "R2P", "A", until=75)\n')
        table = emit(self.load(ops))["sass_table.c"]
        for row in ('{"MOV", 0x202, 0, 0, 0, false, 86, 255}', "false, 0, 255}", "false, 0, 75}"):
            self.assertIn(row, table)

    def test_bad_lines_are_named(self):
        for line, words in (('op(0x010, "2", "A.y", "Rd")', "no field y"),
                            ('op(0x010, "2", "A", "Rx")', "not an operand: Rx"),
                            ('op(0x010, "2", "A", "[p]")', "no address p"),
                            ('op(0x110, "2", "A", "Rd")', "form 2 does not fit"),
                            ('op(0x010, "2", "A", "Rd", when="?")', "not a condition"),
                            ('op(0x010, "2", "A", "Rd", when="!y")', "no field y"),
                            ('op(0x010, "2", "A", "Rd, {y}")', "no field y"),
                            ('op(0x010, "2", "A", "Rd, A.y")', "no field y"),
                            ('raw("x", 1, 1)', "field x is there twice"),
                            ('field("x", 1, "", "Y")', "field x is there twice")):
            with self.assertRaises(SassError) as e:
                self.load(GOOD + line)
            self.assertIn(words, str(e.exception))
            self.assertIn("one.py:5:", str(e.exception))


if __name__ == "__main__":
    unittest.main()
