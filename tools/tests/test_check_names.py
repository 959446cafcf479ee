"""Tests of tools/check_names.py."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import check_names  # noqa: E402


def complaints(**files):
    texts = {f"src/room/{name}.c": text for name, text in files.items()}
    return [message for _, message in check_names.check_files(texts)]


class Tags(unittest.TestCase):
    def test_a_tag_defined_twice_is_found(self):
        found = complaints(a="struct hed_a {\n    int x;\n};", b="enum hed_a { HED_A };")
        self.assertEqual(found, ["tag hed_a is also defined in src/room/b.c:1"])

    def test_using_and_announcing_a_tag_is_fine(self):
        self.assertEqual(complaints(a="struct hed_a {\n    int x;\n};",
                                    b="struct hed_a;\nint hed_f(struct hed_a *a);"), [])

    def test_tags_of_one_file_may_repeat(self):
        self.assertEqual(complaints(a="struct range { int x; };", b="struct range { int y; };"), [])


class Externals(unittest.TestCase):
    def test_a_function_defined_twice_is_found(self):
        found = complaints(a="void\nhed_f(int x)\n{\n}\n", b="\nint\nhed_f(void)\n{\n}\n")
        self.assertEqual(found, ["name hed_f is also defined in src/room/b.c:2"])

    def test_a_variable_defined_twice_is_found(self):
        found = complaints(a="const int hed_v[] = {1, 2};", b="int hed_v;")
        self.assertEqual(found, ["name hed_v is also defined in src/room/b.c:1"])

    def test_declarations_are_no_definitions(self):
        self.assertEqual(complaints(a="extern int hed_v;\nvoid hed_f(int x);",
                                    b="int hed_v = 1;\nvoid\nhed_f(int x)\n{\n}\n"), [])

    def test_a_function_and_a_variable_have_different_names(self):
        self.assertEqual(len(complaints(a="int hed_x;", b="int\nhed_x(void)\n{\n}\n")), 1)

    def test_stand_ins_for_a_missing_library(self):
        text = "int\nhed_tls_open(void)\n{\n}\n"
        self.assertEqual(complaints(tls=text, tls_none=text), [])
        self.assertEqual(len(complaints(tls=text, other=text)), 1)

    def test_every_program_has_a_main(self):
        text = "int\nmain(void)\n{\n}\n"
        self.assertEqual(complaints(a=text, b=text), [])

    def test_comments_strings_and_macros_do_not_count(self):
        self.assertEqual(complaints(a="/* int hed_v; */\n#define F \\\n    int hed_v;\n",
                                    b='int hed_v;\nconst char *hed_s = "int hed_v;";\n'), [])


class Texts(unittest.TestCase):
    def complaints_of(self, interp, lower):
        return check_names.check_files({"src/kernel/ptx/interp/a.c": interp,
                                        "src/kernel/ptx/lower/family/b.c": lower})

    def test_a_text_in_both_tiers_is_found(self):
        found = self.complaints_of('const char *hed_a = "this mode is "\n    "gone";\n',
                                   '\nconst char *hed_b = "this mode is gone";\n')
        self.assertEqual([place for place, _ in found], [("src/kernel/ptx/interp/a.c", 1)])
        self.assertIn("src/kernel/ptx/lower/family/b.c:2", found[0][1])

    def test_words_comments_and_other_texts_are_not(self):
        self.assertEqual(self.complaints_of('const char *hed_a[] = {"vprintf", "one text"};\n',
                                            'const char *hed_b = "vprintf"; /* "one text" */\n'
                                            'const char *hed_c = "one", *hed_d = "text";\n'), [])


class Statics(unittest.TestCase):
    ONE = "static int\nfind_thing(void)\n{\n    return 1;\n}\n"

    def test_a_shared_name_is_found_in_each_file(self):
        self.assertEqual(len(complaints(a=self.ONE, b=self.ONE)), 2)

    def test_another_storey_may_use_the_name(self):
        other = self.ONE.replace("1", "2")
        self.assertEqual(check_names.check_files({"src/kernel/a.c": self.ONE,
                                                  "src/remote/b.c": other}), [])
        self.assertEqual(len(check_names.check_files({"src/remote/wire/a.c": self.ONE,
                                                      "src/remote/client/b.c": other})), 2)

    def test_alternatives_in_one_file_are_fine(self):
        self.assertEqual(complaints(a="#if A\n" + self.ONE + "#else\n" + self.ONE + "#endif\n"), [])

    def test_inline_functions_of_headers_count(self):
        inline = "static inline int\nfind_thing(void)\n{\n    return 1;\n}\n"
        self.assertEqual(len(complaints(a=self.ONE, b=inline)), 2)

    def test_attributes_and_callbacks_are_understood(self):
        text = "static __attribute__((noinline)) void\neach_x(void (*f)(int, void *))\n{\n}\n"
        self.assertEqual(len(complaints(a=text, b=text)), 2)

    def test_a_bare_verb_is_found(self):
        found = complaints(a="static void\ntake(int x)\n{\n}\n")
        self.assertEqual(found, ["static function take is a bare verb: say what it acts on"])


class Bodies(unittest.TestCase):
    SUM = ("static int\nsum_row(const struct row *r, int n)\n{\n    int sum = 0;\n\n"
           "    for (int i = 0; i < n; i++)\n        sum += r->cells[i].sum;\n"
           "    return sum;\n}\n")

    def found(self, a, b, copies=()):
        files = {"src/one/a.c": a, "src/two/b.c": b}
        return [message for _, message in check_names.check_files(files, copies)]

    def test_a_copy_under_another_name_is_found(self):
        self.assertEqual(self.found(self.SUM, self.SUM.replace("sum_row", "add_row")),
                         ["function sum_row has the same body as src/two/b.c:1 (add_row)"])

    def test_a_copy_under_the_same_name_is_found(self):
        self.assertEqual(len(self.found(self.SUM, self.SUM)), 1)

    def test_names_of_variables_comments_and_layout_do_not_count(self):
        other = self.SUM.replace("int sum", "int all").replace(" sum ", " all ")
        other = other.replace("return sum", "/* all */ return  all").replace("*r,", "*x,")
        self.assertEqual(len(self.found(self.SUM, other.replace("r->", "x->"))), 1)

    def test_members_types_calls_and_texts_count(self):
        for old, new in ((".sum", ".count"), ("struct row", "struct line"), ("= 0;", "= 1;"),
                         ("cells", "rows")):
            self.assertEqual(self.found(self.SUM, self.SUM.replace(old, new)), [], old)
        log = self.SUM.replace("return sum", 'hed_log("%s")')
        self.assertEqual(self.found(log, log.replace("%s", "%d")), [])

    def test_small_bodies_are_left_alone(self):
        small = "static int\nis_it(int x)\n{\n    return x == 1;\n}\n"
        self.assertEqual(self.found(small, small.replace("is_it", "is_one")), [])

    def test_listed_copies_stay(self):
        copies = [(("src/one/a.c:sum_row", "src/two/b.c:sum_row"), "for a test")]
        self.assertEqual(self.found(self.SUM, self.SUM, copies), [])
        self.assertEqual(len(self.found(self.SUM, self.SUM.replace("_row", "_it"), copies)), 1)


class Glossary(unittest.TestCase):
    def test_words_must_be_used(self):
        text = "| word | meaning |\n| **lease** | x |\n| **pen** | y |\n"
        self.assertEqual([m for _, m in check_names.check_glossary(text, "int hed_lease;")],
                         ["src/ does not use the word pen"])

    def test_there_are_not_too_many(self):
        text = "| **lease** | x |\n" * 51
        self.assertEqual([m for _, m in check_names.check_glossary(text, "lease")],
                         ["51 entries (at most 50)"])


if __name__ == "__main__":
    unittest.main()
