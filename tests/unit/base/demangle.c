/* Tests of base/demangle: readable names of C++ functions. */
#include "base/demangle.h"

#include <stdio.h>
#include <string.h>

#include "harness/unit.h"

static void
names_become_readable(void **state)
{
    static const struct {
        const char *mangled, *readable;
    } rows[] = {
        {"_Z6kernelPfi", "kernel"},
        {"_ZN2ns5scaleIfLi4EEEvPT_i", "ns::scale<float, 4>"},
        {"_Z3addIiEvPT_S1_", "add<int>"},
        {"_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run"},
        {"_ZL6hiddenPd", "hidden"},
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEE"
         "viT0_T1_",
         "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
         "std::array<char*, 1ul>>"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int>>::push_back"},
        {"_Z3runIZ4mainEUlfE_EvT_", "run<main::{lambda(float)#1}>"},
        {"_Z4packIJifdEEvDpT_", "pack<int, float, double>"},
        {"_Z4packIJEEvDpT_", "pack<>"},
        {"_Z5applyIPFvfEEvT_", "apply<void (*)(float)>"},
        {"_Z4flagILb1ELb0ELin3ELj7EEvv", "flag<true, false, -3, 7u>"},
        {"_Z4enumIL4kind2EEvv", "enum<(kind)2>"},
        {"_ZNK3vecplERKS_", "vec::operator+"},
        {"_ZN3vecIfEC1Ef", "vec<float>::vec"},
        {"_ZN3vecIfED2Ev", "vec<float>::~vec"},
        {"_Z4viewIA4_K6float4Evv", "view<float4 const [4]>"},
    };
    char out[HED_DEMANGLED_MAX];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(hed_demangle(rows[i].mangled, out, sizeof out), rows[i].readable);
}

static void
other_names_stay_as_they_are(void **state)
{
    static const char *const names[] = {"",         "main",
                                        "_Z",       "_ZN",
                                        "_Z5ab",    "_Z99999999999999999999x",
                                        "_ZS0_v",   "_Z1fIXadL_Z1gvEEEvv",
                                        "_ZN1aIE1b"};
    char out[64];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_ptr_equal(hed_demangle(names[i], out, sizeof out), names[i]);
    assert_ptr_equal(hed_demangle(names[1], out, 0), names[1]);
}

static void
long_results_are_truncated(void **state)
{
    char out[8];

    assert_string_equal(hed_demangle("_Z12abcdefghijklv", out, sizeof out), "abcd...");
    assert_string_equal(hed_demangle("_Z7abcdefgv", out, sizeof out), "abcdefg");
}

/* Each substitution of a substitution doubles the name, and endless nesting needs a stack. */
static void
hostile_names_take_little_time_and_stack(void **state)
{
    char name[8192] = "_Z1fI1aIiiE";
    size_t n = strlen(name);
    char out[64];

    for (int i = 0; i < 30; i++)
        n += (size_t)snprintf(name + n, sizeof name - n, "1bIS%c_S%c_E",
                              "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
                              "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
    snprintf(name + n, sizeof name - n, "Evv");
    (void)hed_demangle(name, out, sizeof out);
    memset(name, 'P', sizeof name - 1);
    memcpy(name, "_Z1fI", 5);
    assert_ptr_equal(hed_demangle(name, out, sizeof out), name);
    memset(name, 'N', sizeof name - 1);
    memcpy(name, "_Z", 2);
    assert_ptr_equal(hed_demangle(name, out, sizeof out), name);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_become_readable),
    cmocka_unit_test(other_names_stay_as_they_are),
    cmocka_unit_test(long_results_are_truncated),
    cmocka_unit_test(hostile_names_take_little_time_and_stack),
};

HED_UNIT_MAIN(tests)
