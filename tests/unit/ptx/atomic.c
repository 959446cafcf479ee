/* Tests of atomics, which are compiled and run in both shapes. */
#include "harness/unit.h"

#include "ptx/exec/harness.h"

/* {instruction on [%in] of 64 bits before, old value, memory afterwards} */
static const struct {
    const char *text;
    uint64_t before;
    uint64_t old, after;
} atomics[] = {
    {"atom.global.add.u32 %r1, [%in], 5;", 10, 10, 15},
    {"atom.add.u64 %d1, [%in], -1;", 0, 0, UINT64_MAX},
    {"atom.min.s32 %r1, [%in], -3;", 2, 2, 0xfffffffd},
    {"atom.min.u32 %r1, [%in], -3;", 2, 2, 2},
    {"atom.max.s64 %d1, [%in], -3;", UINT64_MAX, UINT64_MAX, UINT64_MAX},
    {"atom.max.u64 %d1, [%in], 9;", 8, 8, 9},
    {"atom.and.b32 %r1, [%in], 12;", 10, 10, 8},
    {"atom.or.b64 %d1, [%in], 5;", 10, 10, 15},
    {"atom.xor.b32 %r1, [%in], 3;", 1, 1, 2},
    {"atom.exch.b32 %r1, [%in], 3;", 1, 1, 3},
    {"atom.exch.b64 %d1, [%in], 3;", 1, 1, 3},
    {"atom.cas.b32 %r1, [%in], 1, 3;", 1, 1, 3},
    {"atom.cas.b32 %r1, [%in], 2, 3;", 1, 1, 1},
    {"atom.acq_rel.gpu.global.cas.b64 %d1, [%in], 1, 3;", 1, 1, 3},
    {"mov.b16 %h2, 1; mov.b16 %h3, 9; atom.cas.b16 %h1, [%in], %h2, %h3; mov.b32 %r1, {%h1, %h9};",
     1, 1, 9},
    {"atom.inc.u32 %r1, [%in], 7;", 6, 6, 7},
    {"atom.inc.u32 %r1, [%in], 7;", 7, 7, 0},
    {"atom.inc.u32 %r1, [%in], 7;", 9, 9, 0},
    {"atom.dec.u32 %r1, [%in], 7;", 6, 6, 5},
    {"atom.dec.u32 %r1, [%in], 7;", 0, 0, 7},
    {"atom.dec.u32 %r1, [%in], 7;", 9, 9, 7},
    {"atom.add.f32 %f1, [%in], 0f40000000; mov.b32 %r1, %f1;", 0x3f800000, 0x3f800000, 0x40400000},
    {"atom.add.f64 %g1, [%in], 1.0; mov.b64 %d1, %g1;", 0x3ff0000000000000, 0x3ff0000000000000,
     0x4000000000000000},
    {"mov.b16 %h2, 0x4000; atom.add.noftz.f16 %h1, [%in], %h2; mov.b32 %r1, {%h1, %h9};", 0x3c00,
     0x3c00, 0x4200},
    {"mov.b32 %r2, 0x3c004000; atom.add.noftz.f16x2 %r1, [%in], %r2;", 0x3c003c00, 0x3c003c00,
     0x40004200},
    {"mov.b16 %h2, 0x4000; atom.add.noftz.bf16 %h1, [%in], %h2; mov.b32 %r1, {%h1, %h9};", 0x3f80,
     0x3f80, 0x4040},
    {"mov.b32 %r2, 0x3f804000; atom.add.noftz.bf16x2 %r1, [%in], %r2;", 0x3f803f80, 0x3f803f80,
     0x40004040},
    {"red.release.gpu.global.add.u32 [%in], 5; mov.b32 %r1, 0;", 10, 0, 15},
    {"red.add.f32 [%in], 0f40000000; mov.b32 %r1, 0;", 0x3f800000, 0, 0x40400000},
    {"red.global.add.f32 [%in], 0f00000001; mov.b32 %r1, 0;", 0x80000005, 0, 0},
    {"red.global.add.f32 [%in], 0f7f800000; mov.b32 %r1, 0;", 0xff800000, 0, 0x7fffffff},
    {"st.shared.b32 [sh], 0; atom.shared.add.f32 %f1, [sh], 0f00000001;"
     "atom.shared.add.f32 %f1, [sh], 0f00000005;"
     "ld.shared.b32 %r1, [sh];",
     0, 6, 0},
    {"red.inc.u32 [%in], 5; mov.b32 %r1, 0;", 5, 0, 0},
    {"red.global.add.v2.f32 [%in], {%f2, %f3}; mov.b32 %r1, 0;", 0x3f8000003f800000, 0,
     0x3f8000003f800000},
};

static void
check_atomics(enum exec_tier tier)
{
    for (size_t i = 0; i < sizeof(atomics) / sizeof(atomics[0]); i++) {
        uint64_t memory[2] = {atomics[i].before, 0x55};
        uint64_t out[2] = {0};
        char code[300];

        snprintf(code, sizeof(code), "%s st.b32 [%%out], %%r1; st.b64 [%%out+8], %%d1;",
                 atomics[i].text);
        exec_code_as(tier, ".shared .f32 sh;", code, memory, out);

        const uint64_t old = strstr(atomics[i].text, "%d1") ? out[1] : out[0];

        if (old != atomics[i].old || memory[0] != atomics[i].after || memory[1] != 0x55)
            fail_msg("%s: old %#llx, now %#llx", atomics[i].text, (unsigned long long)old,
                     (unsigned long long)memory[0]);
    }
}

static void
atomics_change_memory_and_return_the_old_value(void **state)
{
    (void)state;
    check_atomics(EXEC_BASELINE);
    check_atomics(EXEC_COMPILED);
}

static void
atomics_work_on_128_bits(void **state)
{
    uint64_t in[2] __attribute__((aligned(16))) = {1, 2};
    uint64_t out[4] __attribute__((aligned(16))) = {0};

    (void)state;
    exec_code(NULL,
              "mov.b64 %d1, 1; mov.b64 %d2, 2; mov.b64 %d3, 7; mov.b64 %d4, 8;\n"
              "mov.b128 %q1, {%d1, %d2}; mov.b128 %q2, {%d3, %d4};\n"
              "atom.cas.b128 %q3, [%in], %q1, %q2; st.b128 [%out], %q3;\n"
              "atom.exch.b128 %q3, [%in], %q1; st.b128 [%out+16], %q3;",
              in, out);
    assert_true(in[0] == 1 && in[1] == 2);
    assert_true(out[0] == 1 && out[1] == 2 && out[2] == 7 && out[3] == 8);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(atomics_change_memory_and_return_the_old_value),
    cmocka_unit_test(atomics_work_on_128_bits),
};

HED_UNIT_MAIN(tests)
