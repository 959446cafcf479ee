"""Tests of tools/check_alone.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_alone  # noqa: E402


def missing(system, **archives):
    return check_alone.find_missing(
        {name: check_alone.split_symbols(symbols) for name, symbols in archives.items()},
        set(system))


class Symbols(unittest.TestCase):
    def test_what_another_archive_or_the_system_defines_is_fine(self):
        self.assertEqual(missing(["memcpy"], ptx=[("hed_lock", "U"), ("memcpy", "U")],
                                 base=[("hed_lock", "T")]), {"ptx": [], "base": []})

    def test_what_only_a_higher_room_defines_is_found(self):
        self.assertEqual(missing([], ptx=[("hed_rt_yield", "U"), ("a", "T")]),
                         {"ptx": ["hed_rt_yield"]})

    def test_a_local_symbol_defines_nothing_for_others(self):
        self.assertEqual(missing([], a=[("helper", "t")], b=[("helper", "U")]),
                         {"a": [], "b": ["helper"]})

    def test_symbols_of_the_toolchain_are_nobodys(self):
        self.assertEqual(missing([], a=[("__asan_init", "U"), ("__aarch64_ldadd4_relax", "U")]),
                         {"a": []})


if __name__ == "__main__":
    unittest.main()
