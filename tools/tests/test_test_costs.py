"""Tests of test_costs.py."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import test_costs  # noqa: E402


class Costs(unittest.TestCase):
    def test_the_newest_line_of_a_case_counts(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("2.50 unit.a.b\n1.00 e2e.c\n3.25 unit.a.b\n")
            f.flush()
            self.assertEqual(test_costs.read_costs(f.name), {"unit.a.b": 3.25, "e2e.c": 1.0})

    def test_expensive_cases_must_be_labelled(self):
        costs = {"short": 59.0, "labelled": 300.0, "worse": 90.0, "bad": 61.0}
        self.assertEqual(test_costs.too_expensive(costs, {"labelled"}, 60), ["worse", "bad"])


if __name__ == "__main__":
    unittest.main()
