"""Tests of tools/check_includes.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_includes  # noqa: E402


def complaints(path, *lines):
    return [line for line, _ in check_includes.check_text(path, "\n".join(lines))]


class IncludeTable(unittest.TestCase):
    def test_own_room_system_and_lower_rooms_are_fine(self):
        self.assertEqual(complaints("src/core/layer.c", '#include "core/layer.h"',
                                    "#include <stdio.h>", '#include "base/err.h"',
                                    '#include "gen/cuda_calls.h"'), [])

    def test_upward_arrow_is_found_with_its_line(self):
        self.assertEqual(complaints("src/base/log.c", "", '#  include "core/layer.h"'), [2])

    def test_layers_may_not_know_each_other(self):
        self.assertEqual(complaints("src/layers/quota/quota.c", '#include "layers/sched/sched.h"',
                                    '#include "layers/quota/quota.h"'), [1])

    def test_only_the_trace_layer_knows_the_trace(self):
        self.assertEqual(complaints("src/layers/trace/layer.c", '#include "see/see.h"'), [])
        self.assertEqual(complaints("src/layers/quota/quota.c", '#include "see/see.h"'), [1])

    def test_backends_have_their_own_rows(self):
        self.assertEqual(complaints("src/remote/client/a.c", '#include "remote/wire/conn.h"'), [])
        self.assertEqual(complaints("src/backends/gpu/a.c", '#include "remote/remote.h"'), [1])

    def test_other_storeys_are_entered_by_the_door(self):
        self.assertEqual(complaints("src/cli/a.c", '#include "share/share.h"',
                                    '#include "share/sched/share.h"', '#include "core/layer.h"'),
                         [2])
        self.assertEqual(complaints("src/share/sched/a.c", '#include "share/meet/meet.h"',
                                    '#include "share/share.h"'), [2])

    def test_a_door_leads_to_its_rooms_only(self):
        self.assertEqual(complaints("src/driver/a.c", '#include "kernel/fatbin.h"',
                                    '#include "kernel/ptx.h"'), [2])

    def test_the_two_tiers_meet_only_in_the_rooms_below_them(self):
        self.assertEqual(complaints("src/kernel/ptx/interp/family/a.c",
                                    '#include "kernel/ptx/meaning/meaning.h"',
                                    '#include "kernel/ptx/lower/lower.h"'), [2])
        self.assertEqual(complaints("src/kernel/ptx/meaning/a.c", '#include "kernel/ptx/ptx.h"',
                                    '#include "kernel/ptx/interp/inside.h"',
                                    '#include "kernel/ptx/lower/lower.h"'), [2, 3])

    def test_the_registry_knows_all_storeys(self):
        self.assertEqual(complaints("src/registry.c", '#include "layers/layers.h"',
                                    '#include "layers/quota/quota.h"'), [2])

    def test_unknown_room_and_bare_name_are_refused(self):
        self.assertEqual(complaints("src/common/a.c", '#include "base/err.h"'), [1])
        self.assertEqual(complaints("src/base/err.c", '#include "err.h"',
                                    '#include "../base/err.h"'), [1, 2])

    def test_fenced_libraries(self):
        self.assertEqual(complaints("src/kernel/ptx/lower/a.c", "#include <llvm-c/Core.h>"), [])
        self.assertEqual(complaints("src/kernel/ptx/text/parse.c", "#include <llvm-c/Core.h>"), [1])
        self.assertEqual(complaints("src/abi/cuda_abi.h", "#include <cuda.h>"), [1])

    def test_comments_do_not_count(self):
        self.assertEqual(complaints("src/base/err.c", "/*", '#include "core/layer.h"', "*/"), [])


if __name__ == "__main__":
    unittest.main()
