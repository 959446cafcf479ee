"""Tests of tools/check_readmes.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_readmes  # noqa: E402


def lines(english, chinese):
    """The lines of both pages that differ."""
    return [(a, b) for a, b, _ in check_readmes.compare_pages("\n".join(english),
                                                              "\n".join(chinese))]


def fenced(*commands):
    return ["```sh", *commands, "```"]


class Commands(unittest.TestCase):
    def test_comments_may_be_in_another_language(self):
        self.assertEqual(lines(fenced("heddle run -- ./app   # run it"),
                               fenced("heddle run -- ./app   # 运行")), [])

    def test_another_option_is_found(self):
        self.assertEqual(lines(fenced("a", "b --mem 20G"), fenced("a", "b --mem 10G")), [(3, 3)])

    def test_another_number_in_a_comment_is_found(self):
        self.assertEqual(lines(fenced("a # sm_75 to sm_89"), fenced("a # sm_80 到 sm_89")),
                         [(2, 2)])

    def test_a_hash_inside_a_word_begins_no_comment(self):
        self.assertEqual(lines(fenced("a x#y"), fenced("a x#z")), [(2, 2)])

    def test_a_missing_command_is_found(self):
        self.assertEqual(len(lines(fenced("a", "b"), fenced("a"))), 1)


class Prose(unittest.TestCase):
    def test_words_lines_and_their_order_do_not_matter(self):
        self.assertEqual(lines(["It takes 4 ns on two H100s,", "see [a](docs/a.md) and `b`."],
                               ["`b` 与 [a](docs/a.md)：H100，", "4 ns。"]), [])

    def test_numbers_code_and_links_must_be_the_same(self):
        for one, other in (("4 ns", "5 ns"), ("`a`", "`b`"), ("[a](x.md)", "[a](y.md)"),
                           ("13.0", "13.1"), ("x86-64", "x86")):
            self.assertEqual(lines([one], [other]), [(1, 1)])

    def test_each_row_of_a_table_is_compared_with_its_own(self):
        self.assertEqual(lines(["| 1 |", "| 2 |"], ["| 2 |", "| 1 |"]), [(1, 1), (2, 2)])

    def test_the_links_between_the_pages_differ(self):
        self.assertEqual(lines(["[中文](README.zh-CN.md)"], ["[English](README.md)"]), [])

    def test_a_page_may_lead_to_the_one_in_its_language(self):
        self.assertEqual(lines(["see [a](docs/a.md)"], ["见 [a](docs/a.zh-CN.md)"]), [])
        self.assertEqual(lines(["see [a](docs/a.md)"], ["见 [a](docs/b.zh-CN.md)"]), [(1, 1)])

    def test_text_in_place_of_a_command_is_found_once(self):
        self.assertEqual(lines(["a", *fenced("b"), "c 1"], [*fenced("b"), "a", "c 2"]), [(1, 2)])


class Pages(unittest.TestCase):
    def test_the_pages_of_this_tree_agree(self):
        self.assertEqual(check_readmes.main(["check_readmes.py"]), 0)


if __name__ == "__main__":
    unittest.main()
