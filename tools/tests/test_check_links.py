"""Tests of tools/check_links.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_links  # noqa: E402

os.chdir(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def complaints(page, *lines):
    return [line for line, _ in check_links.check_text(page, "\n".join(lines), {"remote"})]


class Links(unittest.TestCase):
    def test_links_to_files_folders_headings_and_the_web_are_fine(self):
        self.assertEqual(complaints("docs/a.md", "## Why, and how", "[a](../README.md)",
                                    "[b](adr)", "[c](#why-and-how)", "[d](https://x.example/y)",
                                    "[e](../README.md#what-it-costs)"), [])

    def test_a_missing_file_is_found_with_its_line(self):
        self.assertEqual(complaints("docs/a.md", "", "see [a](../gone.md)"), [2])

    def test_a_missing_heading_is_found(self):
        self.assertEqual(complaints("docs/a.md", "# A", "[a](#b)", "[b](../README.md#gone)"),
                         [2, 3])

    def test_of_equal_headings_the_second_has_a_number(self):
        self.assertEqual(complaints("docs/a.md", "## Limits", "## Limits", "[a](#limits-1)"), [])
        self.assertEqual(complaints("docs/a.md", "## Limits", "[a](#limits-1)"), [2])

    def test_fenced_blocks_are_examples(self):
        self.assertEqual(complaints("docs/a.md", "```sh", "[a](gone.md) `src/gone.c`", "```"), [])


class Paths(unittest.TestCase):
    def test_paths_from_the_top_and_from_a_room_must_exist(self):
        self.assertEqual(complaints("docs/a.md", "`src/remote/wire/wire.h`", "`remote/wire/wire.h`",
                                    "`src/remote/wire/`"), [])
        self.assertEqual(complaints("docs/a.md", "`src/remote/gone.h`", "`remote/gone.h`"), [1, 2])

    def test_what_is_no_path_is_left_alone(self):
        self.assertEqual(complaints("docs/a.md", "`gate/s`", "`wire/s`", "`a/b.c`",
                                    "`src/kernel/ptx/{text,run}/`", "`tests/e2e/*.py`"), [])

    def test_generated_files_and_placeholders_need_not_exist(self):
        self.assertEqual(complaints("docs/a.md", "`gen/cuda_front.c`",
                                    "`share/heddle/devices/NAME.json`"), [])

    def test_decisions_speak_of_the_past(self):
        self.assertEqual(complaints("docs/adr/0001-x.md", "`src/abi/`"), [])


if __name__ == "__main__":
    unittest.main()
