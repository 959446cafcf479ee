"""Tests of tools/check_symbols.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_symbols  # noqa: E402


def graph_of(**files):
    """a_b="f : g h": the file a/b.c defines f and calls g and h."""
    symbols = {}
    for name, text in files.items():
        defined, _, undefined = text.partition(":")
        symbols[name.replace("_", "/") + ".c"] = set(defined.split()), set(undefined.split())
    return check_symbols.make_graph(symbols)


class Objects(unittest.TestCase):
    def test_source_is_found_from_the_object(self):
        self.assertEqual(check_symbols.source_of("base/CMakeFiles/heddle_base.dir/log.c.o"),
                         "base/log.c")
        self.assertEqual(check_symbols.source_of("cli/CMakeFiles/heddle.dir/__/a/b.c.o"), "a/b.c")
        self.assertIsNone(check_symbols.source_of("base/CMakeFiles/heddle_base.dir/start.S.o"))


class Arrows(unittest.TestCase):
    def test_a_call_upwards_is_found_where_no_include_shows_it(self):
        graph = graph_of(base_a="hed_a : hed_c", core_c="hed_c : hed_a")
        found = check_symbols.check_arrows(graph)
        self.assertEqual(len(found), 1)
        self.assertIn("src/base/a.c calls hed_c of src/core/c.c", found[0])

    def test_a_name_of_several_files_says_nothing(self):
        graph = graph_of(base_a=": hed_c", core_c="hed_c", driver_c="hed_c")
        self.assertEqual(check_symbols.check_arrows(graph), [])


class Circles(unittest.TestCase):
    def test_only_files_that_reach_each_other_count(self):
        graph = graph_of(x_a="a : b", x_b="b : c", x_c="c : a d", x_d="d", x_e="e : a")
        self.assertEqual(check_symbols.find_circles(graph, set(graph)),
                         [["x/a.c", "x/b.c", "x/c.c"]])

    def test_a_circle_through_another_folder_does_not_count(self):
        graph = graph_of(x_a="a : b", y_b="b : a")
        self.assertEqual(check_symbols.find_circles(graph, {"x/a.c"}), [])


if __name__ == "__main__":
    unittest.main()
