"""Tests of tools/check_calls.py."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import check_calls  # noqa: E402

CALLS = {"cuInit", "cuMemFree_v2", "cuLaunchKernel"}


def names(text):
    return [(name, made) for _, name, made in check_calls.names_in(text, CALLS)]


class Names(unittest.TestCase):
    def test_names_are_found_at_the_end_of_words(self):
        self.assertEqual(names("struct hed_cuInit *a; quota_cuMemFree_v2; HED_cuLaunchKernel"),
                         [("cuInit", False), ("cuMemFree_v2", False), ("cuLaunchKernel", False)])
        self.assertEqual(names("cuInitial, cuMemFree, cuInit_x"), [])

    def test_variants_are_the_call(self):
        self.assertEqual(names("cuLaunchKernel_ptsz"), [("cuLaunchKernel", False)])

    def test_comments_and_texts_count(self):
        self.assertEqual(names('/* hed_call(at, cuInit) */ "cuMemFree_v2"'),
                         [("cuInit", False), ("cuMemFree_v2", False)])

    def test_calls_that_are_made_are_told_apart(self):
        self.assertEqual(names("hed_call(self->next, cuMemFree_v2, .dptr = p)"),
                         [("cuMemFree_v2", True)])
        self.assertEqual(names("hed_worker_do(w,\n    cuInit, 0)"), [("cuInit", True)])
        self.assertEqual(names("hed_remote_send(r, f(x), 0, 0, cuInit)"), [("cuInit", True)])
        self.assertEqual(names('ASK(p, library, "cuInit", (int), 0)'), [("cuInit", True)])
        self.assertEqual(names("hed_call(x, y); cuInit"), [("cuInit", False)])


class Ratchet(unittest.TestCase):
    FILES = {"src/layers/quota/a.c": "HED_cuInit hed_call(n, cuInit)", "src/core/b.c": "cuInit"}

    def check(self, most):
        return list(check_calls.check_files(self.FILES, CALLS, most))

    def test_a_tree_within_the_numbers_passes(self):
        self.assertEqual(self.check({"layers/quota": (1, 1), "core": (0, 1)}), [])

    def test_a_name_too_many_is_told_with_its_file(self):
        found = self.check({"layers/quota": (1, 0), "core": (0, 1)})
        self.assertEqual(len(found), 1)
        self.assertIn("src/layers/quota/a.c (1)", found[0])

    def test_a_room_that_is_not_listed_has_none(self):
        found = self.check({"layers/quota": (1, 1)})
        self.assertEqual(len(found), 1)
        self.assertIn("src/core", found[0])


if __name__ == "__main__":
    unittest.main()
