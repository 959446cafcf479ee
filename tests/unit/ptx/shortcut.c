/* The short ways of the baseline tier: accesses whose addresses lie in rows, shuffles by numbers
 * that are known beforehand, and registers that are never written because they only repeat another
 * value. Each must do what the long way does, also where only some lanes run.
 */
#include "harness/unit.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptx/exec/harness.h"

#define LANES 32
#define PITCH 512 /* bytes from row to row */

static void
run_text(const char *text, unsigned width, void *const *params, size_t size, uint32_t trap)
{
    const struct exec_launch launch = {
        .threads = LANES, .width = width, .params = params, .size = size};
    struct exec e;

    exec_open(&e, text, EXEC_BASELINE);
    if ((exec_run(&e, "k", &launch) != 0) != (trap != 0) || e.trap != trap)
        fail_msg("%s: %s, trap %u at line %u", text, e.why.text, e.trap, e.trap_line);
    exec_close(&e);
}

/* Copies an element per thread through shared memory; rows of the block are PITCH bytes apart, and
 * all addresses begin at `skew` elements. */
static void
copy_rows(unsigned width, unsigned bytes, const char *guard, unsigned char *in, unsigned char *out)
{
    static const char form[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 pin, .param .u64 pout) {\n"
        ".reg .b64 %%i, %%o, %%v, %%d<9>; .reg .pred %%p<9>;\n"
        ".reg .b32 %%x, %%y, %%l, %%s, %%r<9>;\n"
        ".reg .b16 %%h; .shared .align 16 .b8 sh[16384];\n"
        "ld.param.u64 %%i, [pin]; ld.param.u64 %%o, [pout];\n"
        "mov.u32 %%x, %%tid.x; mov.u32 %%y, %%tid.y; mov.u32 %%l, %%laneid;\n"
        "mul.lo.u32 %%y, %%y, %u; mad.lo.u32 %%x, %%x, %u, %%y;\n"
        "cvt.u64.u32 %%d1, %%x; add.u64 %%i, %%i, %%d1; add.u64 %%o, %%o, %%d1;\n"
        "mov.u32 %%s, sh; add.u32 %%s, %%s, %%x; sub.u32 %%s, %%s, 64;\n"
        "%s\n"
        "ld.global.b%u %s, [%%i]; st.shared.b%u [%%s+64], %s;\n"
        "ld.shared.b%u %s, [%%s+64]; st.global.b%u [%%o], %s;\nDONE: ret; }\n";
    const char *v = bytes == 8 ? "%v" : bytes == 4 ? "%r1" : "%h";
    const unsigned bits = 8 * bytes;
    void *params[] = {in, out};
    char *text = NULL;

    if (asprintf(&text, form, PITCH, bytes, guard, bits, v, bits, v, bits, v, bits, v) < 0)
        fail();
    run_text(text, width, params, sizeof(params), 0);
    free(text);
}

static void
expect_rows(unsigned width, unsigned bytes, const char *guard, uint32_t lanes)
{
    const size_t size = (size_t)LANES * PITCH;
    unsigned char *in = malloc(size), *out = calloc(1, size), *want = calloc(1, size);

    assert_true(in && out && want);
    for (size_t i = 0; i < size; i++)
        in[i] = (unsigned char)(i * 7 + i / 256);
    for (unsigned i = 0; i < LANES; i++)
        if (lanes >> i & 1)
            memcpy(want + i / width * PITCH + i % width * bytes,
                   in + i / width * PITCH + i % width * bytes, bytes);
    copy_rows(width, bytes, guard, in, out);
    assert_memory_equal(out, want, size);
    free(in);
    free(out);
    free(want);
}

static void
rows_of_any_width_are_copied(void **state)
{
    (void)state;
    for (unsigned width = 2; width <= LANES; width *= 2) {
        for (unsigned bytes = 1; bytes <= 8; bytes *= 2) {
            expect_rows(width, bytes, "", UINT32_MAX);
            expect_rows(width, bytes, "setp.lt.u32 %p1, %l, 20; @!%p1 bra DONE;", 0xfffff);
            expect_rows(width, bytes, "and.b32 %r2, %l, 5; setp.eq.u32 %p1, %r2, 1; @%p1 bra DONE;",
                        0xf5f5f5f5);
        }
    }
}

/* The last words of memory, with nothing behind them: lanes that do not run must not touch it. */
static void
accesses_end_with_the_memory(void **state)
{
    static const char text[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p, .param .u64 n) {\n"
        ".reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<9>;\n"
        "ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %laneid;\n"
        "setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE;\n"
        "mul.wide.u32 %d2, %r2, 4; add.u64 %d3, %d1, %d2;\n"
        "ld.global.u32 %r3, [%d3]; add.u32 %r3, %r3, %r2; st.global.u32 [%d3], %r3; DONE: ret; }\n";
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *at =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
    for (uint64_t n = 0; n <= LANES; n++) {
        uint32_t *words = (uint32_t *)(void *)(at + page) - n;
        void *params[] = {words, (void *)(uintptr_t)n};

        for (unsigned i = 0; i < n; i++)
            words[i] = 1000;
        run_text(text, 0, params, sizeof(params), 0);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(words[i], 1000 + i);
    }
    munmap(at, 2 * page);
}

static void
a_misaligned_row_traps(void **state)
{
    static const char text[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p) { .reg .b64 %d<9>; .reg .b32 %r<9>;\n"
        "ld.param.u64 %d1, [p]; mov.u32 %r2, %laneid; mul.wide.u32 %d2, %r2, 4;\n"
        "add.u64 %d1, %d1, %d2; ld.global.u32 %r3, [%d1+2]; st.global.u32 [%d1], %r3; ret; }\n";
    uint32_t words[LANES + 1] = {0};
    void *params[] = {words};

    (void)state;
    run_text(text, 0, params, sizeof(params), HED_PTX_TRAP_ALIGN);
}

/* Two shuffles by the same number, which is known for the first one only; results and predicates of
 * both. Lanes that are not in `lanes` take no part. */
static void
expect_same_shuffles(const char *mode, unsigned by, unsigned c, uint32_t lanes)
{
    static const char form[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p) {\n"
        ".reg .b64 %%d<9>; .reg .b32 %%r<19>; .reg .pred %%p<9>;\n"
        "ld.param.u64 %%d1, [p]; mov.u32 %%r2, %%laneid; mul.wide.u32 %%d2, %%r2, 16;\n"
        "add.u64 %%d1, %%d1, %%d2; mad.lo.u32 %%r1, %%r2, 2654435761, 12345;\n"
        "mov.u32 %%r3, %u; and.b32 %%r4, %%r2, 0; add.u32 %%r4, %%r4, %u; mov.u32 %%r5, %u;\n"
        "shl.b32 %%r6, 1, %%r2; and.b32 %%r6, %%r6, %u; setp.eq.u32 %%p1, %%r6, 0;\n"
        "@%%p1 bra DONE;\n"
        "shfl.sync.%s.b32 %%r7|%%p2, %%r1, %%r3, %%r5, %u;\n"
        "shfl.sync.%s.b32 %%r8|%%p3, %%r1, %%r4, %%r5, %u;\n"
        "selp.u32 %%r9, 1, 2, %%p2; selp.u32 %%r10, 1, 2, %%p3;\n"
        "st.global.v4.u32 [%%d1], {%%r7, %%r8, %%r9, %%r10}; DONE: ret; }\n";
    uint32_t out[LANES][4] = {{0}};
    void *params[] = {out};
    char *text = NULL;

    if (asprintf(&text, form, by, by, c, lanes, mode, lanes, mode, lanes) < 0)
        fail();
    run_text(text, 0, params, sizeof(params), 0);
    for (unsigned i = 0; i < LANES; i++) {
        if (out[i][0] != out[i][1] || out[i][2] != out[i][3])
            fail_msg("%s by %u, c %u: lane %u has %u, %u; not %u, %u", mode, by, c, i, out[i][0],
                     out[i][2], out[i][1], out[i][3]);
        assert_int_equal(out[i][2] != 0, lanes >> i & 1);
    }
    free(text);
}

static void
shuffles_by_known_numbers_are_shuffles(void **state)
{
    static const struct {
        const char *mode;
        unsigned c[3];
    } modes[] = {{"up", {0, 0x1800, 4}},
                 {"down", {31, 0x181f, 20}},
                 {"bfly", {31, 0x101f, 7}},
                 {"idx", {31, 0x181f, 9}}};

    (void)state;
    for (unsigned m = 0; m < 4; m++) {
        for (unsigned by = 0; by <= 40; by++) {
            for (unsigned k = 0; k < 3; k++)
                expect_same_shuffles(modes[m].mode, by, modes[m].c[k], UINT32_MAX);
            expect_same_shuffles(modes[m].mode, by, modes[m].c[0], 0x00ffff0f);
        }
    }
}

/* Runs code whose lanes leave %r0 in `out`. */
static void
run_code(const char *code, uint32_t *out)
{
    static const char form[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p) {\n"
        ".reg .b64 %%d<9>; .reg .b32 %%r<19>; .reg .pred %%p<9>;\n"
        "mov.u32 %%r1, %%laneid; %s\n"
        "ld.param.u64 %%d1, [p]; mul.wide.u32 %%d2, %%r1, 4; add.u64 %%d3, %%d1, %%d2;\n"
        "st.global.u32 [%%d3], %%r0; ret; }\n";
    void *params[] = {out};
    char *text = NULL;

    if (asprintf(&text, form, code) < 0)
        fail();
    run_text(text, 0, params, sizeof(params), 0);
    free(text);
}

/* A copy is not the register that it was made from if that has been written since. */
static void
copies_keep_the_value_that_they_took(void **state)
{
    uint32_t out[LANES];

    (void)state;
    /* Odd lanes take a copy in the first round only. */
    run_code("mov.u32 %r0, 0; mov.u32 %r2, 0;\n"
             "LOOP: add.u32 %r3, %r2, 10; and.b32 %r4, %r1, %r2; and.b32 %r4, %r4, 1;\n"
             "setp.ne.u32 %p1, %r4, 0; @%p1 bra SKIP; mov.b32 %r5, %r3;\n"
             "SKIP: mad.lo.u32 %r0, %r0, 100, %r5; add.u32 %r2, %r2, 1;\n"
             "setp.lt.u32 %p2, %r2, 2; @%p2 bra LOOP;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], i % 2 ? 1010 : 1011);
}

static void
constants_that_are_changed_under_a_guard_are_not_constant(void **state)
{
    uint32_t out[LANES];

    (void)state;
    run_code("mov.u32 %r0, 5; setp.gt.u32 %p1, %r1, 9; @%p1 mov.u32 %r0, 6;", out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], i > 9 ? 6 : 5);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_of_any_width_are_copied),
    cmocka_unit_test(accesses_end_with_the_memory),
    cmocka_unit_test(a_misaligned_row_traps),
    cmocka_unit_test(shuffles_by_known_numbers_are_shuffles),
    cmocka_unit_test(copies_keep_the_value_that_they_took),
    cmocka_unit_test(constants_that_are_changed_under_a_guard_are_not_constant),
};

HED_UNIT_MAIN(tests)
