"""Tests of tools/check_style.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_style  # noqa: E402


def complaints(path, text):
    return check_style.check_text(path, text)


def in_function(statement):
    return "/* A test. */\nvoid\nf(void)\n{\n    " + statement + "\n}\n"


class Banned(unittest.TestCase):
    def test_everywhere(self):
        for name in check_style.BANNED.split():
            for path in ("src/base/a.c", "src/cli/a.c", "tests/unit/a.c"):
                found = complaints(path, in_function(name + "(x);"))
                self.assertEqual(found, [(5, name + " is banned")])

    def test_in_libraries_only(self):
        for name in check_style.BANNED_IN_LIBRARIES.split():
            text = in_function(name + " (x);")
            self.assertEqual(complaints("src/core/a.c", text), [(5, name + " is banned")])
            for path in ("src/cli/a.c", "tests/e2e/a.c", "bench/a.c"):
                self.assertEqual(complaints(path, text), [])

    def test_environment_of_programs_with_more_rights(self):
        text = in_function('x = getenv("HOME");')
        self.assertEqual(complaints("src/core/a.c", text),
                         [(5, "getenv is banned; use secure_getenv")])
        self.assertEqual(complaints("src/cli/a.c", text), [])
        for statement in ('secure_getenv("HOME");', 'getenv("CUDA_VISIBLE_DEVICES");'):
            self.assertEqual(complaints("src/core/a.c", in_function(statement)), [], statement)

    def test_only_whole_words_that_are_called(self):
        for statement in ("snprintf(a);", "_exit(1);", "x->exit(1);", "x.signal(2);",
                          'puts("exit(1)");', "/* exit(1) */", "c = '\"'; /* system(x) */",
                          "int system;"):
            self.assertEqual(complaints("src/core/a.c", in_function(statement)), [], statement)


class Shape(unittest.TestCase):
    def test_opening_comment(self):
        self.assertEqual(len(complaints("src/core/a.c", "int x;\n")), 1)

    def test_pragma_once(self):
        self.assertEqual(len(complaints("src/core/a.h", "/* A. */\nint x;\n")), 1)
        self.assertEqual(complaints("src/core/a.h", "/* A. */\n#pragma once\n"), [])

    def test_white_space_and_columns(self):
        self.assertEqual(complaints("gen/a.py", "x = 1 \n"),
                         [(1, "white space at the end of the line")])
        self.assertEqual(complaints("gen/a.py", "\tx\n"), [(1, "a tab")])
        self.assertEqual(complaints("Makefile", "\tx\n"), [])
        self.assertEqual(len(complaints("gen/a.py", "#" * 101 + "\n")), 1)
        self.assertEqual(complaints("gen/a.py", "#" * 100 + "\n"), [])
        self.assertEqual(complaints("gen/a.py", "x"), [(1, "no newline at the end")])

    def test_long_files(self):
        self.assertEqual(complaints("spec/a.py", "x\n" * 600), [])
        self.assertEqual(len(complaints("spec/a.py", "x\n" * 601)), 1)
        self.assertEqual(complaints("tests/a.py", "x\n" * 601), [])

    def test_long_functions(self):
        self.assertEqual(complaints("src/core/a.c", in_function("\n".join(["x;"] * 60))), [])
        self.assertEqual(len(complaints("src/core/a.c", in_function("\n".join(["x;"] * 61)))), 1)

    def test_line_comments(self):
        self.assertEqual(complaints("src/core/a.c", "/* A. */\nint x; // no\n"),
                         [(2, "comments are written /* */")])
        self.assertEqual(complaints("src/core/a.c", '/* A. */\nchar *x = "http://";\n'), [])


if __name__ == "__main__":
    unittest.main()
