/* Tests of what the passes tell people of a kernel, and of the board on which processes show
 * theirs. */
#include "harness/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "kernel/ptx/pass/explain.h"
#include "kernel/ptx/run/board.h"
#include "kernel/ptx/run/layout.h"
#include "kernel/ptx/text/parse.h"

#define HEAD                                                                    \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                           \
    ".visible .entry k(.param .u64 in, .param .u32 n) {\n"                      \
    ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<9>;\n" \
    "ld.param.u64 %rd1, [in]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;\n"    \
    "mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2;\n"

struct explained {
    struct hed_ptx_module module;
    struct hed_ptx_unit unit;
    struct hed_explain e;
};

static void
explain(struct explained *x, const char *text, enum hed_rows rows)
{
    hed_ptx_module_init(&x->module, HED_PTX_CEILING);
    assert_int_equal(hed_ptx_parse(&x->module, text, strlen(text)), 0);
    assert_int_equal(hed_ptx_unit_init(&x->unit, &x->module, x->module.funcs), 0);
    assert_int_equal(hed_explain_init(&x->e, &x->unit, x->module.funcs, rows), 0);
}

static void
forget(struct explained *x)
{
    hed_explain_fini(&x->e);
    hed_ptx_unit_fini(&x->unit);
    hed_ptx_module_fini(&x->module);
}

/* The only instruction that accesses memory, parameters aside. */
static const struct hed_explain_line *
only_access(const struct hed_explain *e)
{
    const struct hed_explain_line *found = NULL;

    for (uint32_t i = 0; i < e->nlines; i++) {
        if (e->lines[i].access != HED_ACCESS_NONE) {
            assert_null(found);
            found = &e->lines[i];
        }
    }
    assert_non_null(found);
    return found;
}

static void
accesses_are_told_apart(void **state)
{
    static const struct {
        const char *body;
        enum hed_rows rows;
        enum hed_access access;
        int64_t step;
        const char *cause;
    } cases[] = {
        {"ld.global.f32 %f1, [%rd1]; ret; }\n", HED_ROWS_32, HED_ACCESS_ONE, 0, NULL},
        {"ld.global.f32 %f1, [%rd3]; ret; }\n", HED_ROWS_32, HED_ACCESS_ROW, 4, NULL},
        {"ld.global.f64 %rd5, [%rd3]; ret; }\n", HED_ROWS_32, HED_ACCESS_STEPS, 4, NULL},
        {"mul.lo.u64 %rd4, %rd2, 8; add.u64 %rd4, %rd1, %rd4; st.global.f32 [%rd4], %f1; ret; }\n",
         HED_ROWS_32, HED_ACCESS_STEPS, 32, NULL},
        {"mul.lo.u64 %rd4, %rd2, %rd2; add.u64 %rd4, %rd1, %rd4; ld.global.f32 %f1, [%rd4]; ret; "
         "}\n",
         HED_ROWS_32, HED_ACCESS_ANYWHERE, 0, "keeps no fixed step from lane to lane"},
        {"setp.gt.u32 %p1, %r2, 5; mov.u64 %rd4, %rd1; @%p1 bra B; add.u64 %rd4, %rd4, 64;\n"
         "B: ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ANYWHERE, 0, "lanes come by different ways"},
        {"mov.u64 %rd4, %rd1; mov.u32 %r3, 0;\nL: add.u64 %rd4, %rd4, 64; add.u32 %r3, %r3, 1;\n"
         "setp.lt.u32 %p1, %r3, %r2; @%p1 bra L; ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ANYWHERE, 0, "lanes leave a loop one by one"},
        /* distances that differ, but are known */
        {"and.b32 %r3, %r2, 3; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4;\n"
         "ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_OFFSETS, 0, NULL},
        {"xor.b32 %r3, %r2, 1; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4;\n"
         "ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_OFFSETS, 0, NULL},
        {"xor.b32 %r3, %r2, 16384; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4;\n"
         "ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ROW, 4, NULL},
        /* what a sum of 32 bits may be says whether it wraps around before it is widened */
        {"and.b32 %r4, %r1, 255; and.b32 %r3, %r2, 3; add.u32 %r3, %r3, %r4;\n"
         "mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4; ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_OFFSETS, 0, NULL},
        {"and.b32 %r3, %r2, 3; add.u32 %r3, %r3, %r1;\n"
         "mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4; ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ANYWHERE, 0, NULL},
        /* what a register held before a guarded write, and is read by nobody; halves of a number */
        {"setp.lt.u32 %p1, %r2, %r1; mul.lo.u64 %rd4, %rd2, %rd2;\n"
         "@%p1 add.u64 %rd4, %rd1, %rd2; @%p1 ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ROW, 4, NULL},
        {"setp.lt.u32 %p1, %r2, %r1; mul.lo.u64 %rd4, %rd2, %rd2;\n"
         "@%p1 add.u64 %rd4, %rd1, %rd2; @!%p1 ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ANYWHERE, 0, NULL},
        {"setp.lt.u32 %p1, %r1, 5; mul.lo.u64 %rd4, %rd2, %rd2; @%p1 add.u64 %rd4, %rd1, %rd2;\n"
         "@%p1 bra B; mov.u64 %rd4, %rd3; B: ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ROW, 4, NULL},
        /* a bit that is the same in all lanes, beside others that are not */
        {"setp.lt.u32 %p1, %r2, %r1; selp.b32 %r3, 1, 0, %p1; setp.gt.u32 %p2, %r1, 9;\n"
         "@%p2 or.b32 %r3, %r3, 128; and.b32 %r4, %r3, 128; mul.wide.u32 %rd4, %r4, 4;\n"
         "add.u64 %rd4, %rd3, %rd4; ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ROW, 4, NULL},
        {"setp.lt.u32 %p1, %r2, %r1; selp.b32 %r3, 1, 0, %p1; setp.gt.u32 %p2, %r1, 9;\n"
         "@%p2 or.b32 %r3, %r3, 128; and.b32 %r4, %r3, 129; mul.wide.u32 %rd4, %r4, 4;\n"
         "add.u64 %rd4, %rd3, %rd4; ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ANYWHERE, 0, NULL},
        /* of which some come from the thread's number, before or after */
        {"setp.lt.u32 %p1, %r2, %r1; selp.b32 %r3, 1, 0, %p1; setp.gt.u32 %p2, %r1, 9;\n"
         "@%p2 add.u32 %r3, %r2, 3; and.b32 %r4, %r3, 4; mul.wide.u32 %rd4, %r4, 4;\n"
         "add.u64 %rd4, %rd3, %rd4; ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ANYWHERE, 0, NULL},
        {"setp.lt.u32 %p1, %r2, %r1; setp.gt.u32 %p2, %r1, 9; add.u32 %r3, %r2, 3;\n"
         "@%p2 selp.b32 %r3, 1, 0, %p1; and.b32 %r4, %r3, 4; mul.wide.u32 %rd4, %r4, 4;\n"
         "add.u64 %rd4, %rd3, %rd4; ld.global.f32 %f1, [%rd4]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ANYWHERE, 0, NULL},
        {"mov.b64 {%r4, %r5}, %rd3; mov.b64 %rd6, {%r4, %r5}; ld.global.f32 %f1, [%rd6]; ret; }\n",
         HED_ROWS_32, HED_ACCESS_ROW, 4, NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct explained x;
        char text[2048];

        snprintf(text, sizeof(text), "%s%s", HEAD, cases[i].body);
        explain(&x, text, cases[i].rows);

        const struct hed_explain_line *l = only_access(&x.e);

        assert_int_equal(l->access, cases[i].access);
        assert_int_equal(l->step, cases[i].step);
        if (cases[i].cause)
            assert_string_equal(l->cause, cases[i].cause);
        forget(&x);
    }
}

static void
barriers_and_loops_are_found(void **state)
{
    struct explained x;

    explain(&x,
            HEAD "mov.u32 %r3, 0;\n"
                 "L: add.u32 %r3, %r3, 1;\n"
                 "bar.sync 0;\n"
                 "setp.lt.u32 %p1, %r3, %r1; @%p1 bra L;\n"
                 "setp.lt.u32 %p2, %r2, 5; @%p2 bar.sync 1;\n"
                 "st.global.u32 [%rd3], %r3; ret; }\n",
            HED_ROWS_32);
    assert_int_equal(x.e.barriers, 2);
    assert_int_equal(x.e.splits, 1);
    assert_string_equal(x.e.why, "a barrier that some lanes do not reach");
    assert_int_equal(x.e.nloops, 1);
    assert_int_equal(x.e.loops[0].first, 9);
    assert_int_equal(x.e.loops[0].last, 11);
    assert_false(x.e.loops[0].leaves_singly);
    assert_true(x.e.loops[0].cost.numbers > 0);
    forget(&x);
}

static void
what_cannot_run_under_masks_has_a_reason(void **state)
{
    struct explained x;

    explain(&x,
            HEAD "L: ld.volatile.global.u32 %r3, [%rd3]; setp.eq.u32 %p1, %r3, 0; @%p1 bra L;\n"
                 "st.global.u32 [%rd3+4], %r3; ret; }\n",
            HED_ROWS_32);
    assert_string_equal(x.e.why, "a loop in which a lane may wait for another");
    forget(&x);
    explain(&x,
            HEAD "setp.lt.u32 %p1, %r2, 5; @%p1 barrier.arrive 1, 64;\n"
                 "st.global.u32 [%rd3], %r2; ret; }\n",
            HED_ROWS_32);
    assert_string_equal(x.e.why, "a barrier that some lanes do not reach");
    forget(&x);
}

struct waiting {
    const char *name, *body;
    bool is_refused;
};

static const struct waiting waiting[] = {
    {"what a register held before says nothing about the loop",
     "ld.volatile.global.u32 %r3, [%rd3]; st.global.u32 [%rd3], %r3; mov.u32 %r3, 0;\n"
     "L: ld.global.u32 %r4, [%rd3]; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2; @%p1 bra L;\n"
     "st.global.u32 [%rd3], %r4; ret; }\n",
     false},
    {"a block that lies in the text of a loop is not in the loop",
     "mov.u32 %r3, 0; setp.eq.u32 %p3, %r2, 40; @%p3 bra E;\n"
     "L: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2; @!%p1 bra X; bra B;\n"
     "E: atom.global.add.u32 %r5, [%rd1], 1; setp.eq.u32 %p2, %r5, 3; @%p2 bra X;\n"
     "st.global.u32 [%rd3], %r5; ret;\n"
     "B: st.global.u32 [%rd3], %r3; bra L; X: ret; }\n",
     false},
    {"thread 0 takes a lock, the others are at the barrier",
     "setp.ne.u32 %p1, %r2, 0; @%p1 bra J;\n"
     "L: atom.global.cas.b32 %r3, [%rd1], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra L;\n"
     "J: bar.sync 0; st.global.u32 [%rd3], %r2; ret; }\n",
     false},
    {"lanes that find the flag wait for the others at the end of the loop",
     "L: ld.volatile.global.u32 %r3, [%rd3]; setp.eq.u32 %p1, %r3, 0; @%p1 bra L;\n"
     "bar.warp.sync 0xffffffff; st.global.u32 [%rd3+4], %r3; ret; }\n",
     false},
    {"a round that only looks, in a loop that does more",
     "mov.u32 %r5, 0; L: ld.shared.u32 %r3, [%rd3]; setp.eq.u32 %p1, %r3, %r5; @%p1 bra L;\n"
     "st.global.u32 [%rd3], %r5; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 9; @%p2 bra L;\n"
     "st.global.u32 [%rd1], %r5; ret; }\n",
     true},
    {"the same with an if instead of another branch back",
     "mov.u32 %r5, 0; L: ld.shared.u32 %r3, [%rd3]; setp.eq.u32 %p1, %r3, %r5; @%p1 bra J;\n"
     "st.global.u32 [%rd3], %r5; mov.u32 %r5, %r3; J: setp.lt.u32 %p2, %r5, 9; @%p2 bra L;\n"
     "st.global.u32 [%rd1], %r5; ret; }\n",
     true},
    {"a loop that reads two words at once again and again",
     "L: ld.shared.v2.u32 {%r3, %r4}, [%rd3]; setp.eq.u32 %p1, %r4, 0; @%p1 bra L;\n"
     "st.global.u32 [%rd3], %r3; ret; }\n",
     true},
    {"a loop that reads another word each time",
     "mov.u32 %r5, 0; L: ld.global.u32 %r3, [%rd3]; add.u64 %rd3, %rd3, 4; add.u32 %r5, %r5, 1;\n"
     "setp.ne.u32 %p1, %r3, %r5; @%p1 bra L; st.global.u32 [%rd3], %r5; ret; }\n",
     false},
    {"a lane that has the lock gives it back without waiting",
     "L: atom.global.cas.b32 %r3, [%rd1], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra L;\n"
     "st.global.u32 [%rd1], 0; bar.sync 0; ret; }\n",
     true},
    {"the other side of the branch sets the flag, and runs first",
     "setp.ne.u32 %p1, %r2, 0; @%p1 bra E;\n"
     "L: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L; bra J;\n"
     "E: st.global.u32 [%rd1], 1; J: bar.sync 0; ret; }\n",
     false},
    {"the others set the flag before they come to the barrier",
     "setp.ne.u32 %p1, %r2, 0; @%p1 bra J;\n"
     "L: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;\n"
     "J: @%p1 st.global.u32 [%rd1], 1; bar.sync 0; ret; }\n",
     true},
    {"only half of the warp is waited for",
     "L: ld.volatile.global.u32 %r3, [%rd3]; setp.eq.u32 %p1, %r3, 0; @%p1 bra L;\n"
     "bar.warp.sync 0xffff; st.global.u32 [%rd3+4], %r3; ret; }\n",
     true},
    {"thread 0 waits, and machine code asks whether all lanes are there",
     "setp.ne.u32 %p1, %r2, 0; @%p1 bra J;\n"
     "L: ld.relaxed.gpu.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;\n"
     "J: activemask.b32 %r4; setp.eq.u32 %p3, %r4, 0xffffffff; @%p3 bra M;\n"
     "mov.u32 %r5, 0xffffffff; bar.warp.sync %r5; M: bar.warp.sync 0xffffffff; bar.sync 0;\n"
     "st.global.u32 [%rd3], %r2; ret; }\n",
     false},
    {"the others write to shared memory, and the loop looks at global memory",
     "setp.ne.u32 %p1, %r2, 0; @%p1 bra J;\n"
     "L: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;\n"
     "st.volatile.global.u32 [%rd1+4], %r3; J: @%p1 bra M; st.shared.u32 [64], %r3;\n"
     "M: bar.sync 0; st.global.u32 [%rd3], %r2; ret; }\n",
     false},
    {"the others write to shared memory, and the loop looks there",
     "setp.ne.u32 %p1, %r2, 0; @%p1 bra J;\n"
     "L: ld.volatile.shared.u32 %r3, [64]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;\n"
     "J: @!%p1 bra M; st.shared.u32 [64], %r2; M: bar.sync 0; ret; }\n",
     true},
    {"another warp looks at shared memory, and then lets thread 0 go",
     "setp.ne.u32 %p1, %r2, 0; @%p1 bra J;\n"
     "L: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;\n"
     "J: @!%p1 bra M; st.shared.u32 [64], %r2; M: bar.warp.sync 0xffffffff;\n"
     "N: ld.volatile.shared.u32 %r4, [64]; setp.eq.u32 %p3, %r4, 0; @%p3 bra N;\n"
     "st.global.u32 [%rd1], %r4; ret; }\n",
     true},
    {"a loop that looks at memory of any kind",
     "setp.ne.u32 %p1, %r2, 0; @%p1 bra J;\n"
     "L: ld.volatile.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;\n"
     "J: @!%p1 bra M; st.shared.u32 [64], %r2; M: bar.sync 0; ret; }\n",
     true},
    {"lanes that leave one by one, and write to what the others look at",
     "L: ld.volatile.global.u32 %r3, [%rd3]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;\n"
     "st.global.u32 [%rd3+4], %r3; bar.sync 0; ret; }\n",
     true},
    {"lanes that leave the loop around it set the flag",
     "mov.u32 %r5, 0;\n"
     "O: L: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, %r3, %r5; @%p1 bra L;\n"
     "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r2; @%p2 bra O;\n"
     "st.global.u32 [%rd1], %r5; bar.sync 0; ret; }\n",
     true},
    {"each round gives the lock back before lanes try again",
     "mov.u32 %r5, 0;\n"
     "O: atom.global.cas.b32 %r3, [%rd1], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra O;\n"
     "st.global.u32 [%rd3], %r5; atom.global.exch.b32 %r4, [%rd1], 0;\n"
     "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3; @%p1 bra O; bar.sync 0; ret; }\n",
     false},
};

static void
loops_that_wait_for_lanes_are_refused(void **state)
{
    char text[4096];

    for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++) {
        struct explained x;

        snprintf(text, sizeof(text), "%s%s", HEAD, waiting[i].body);
        explain(&x, text, HED_ROWS_32);
        if (!x.e.why == waiting[i].is_refused)
            fail_msg("%s: %s", waiting[i].name, x.e.why ? x.e.why : "not refused");
        forget(&x);
    }
}

/* ---- the board ------------------------------------------------------------------------------- */

/* The descriptor of this process's newest board. */
static int
own_board(void)
{
    char path[64], link[64];
    int found = -1;

    for (int fd = 0; fd < 256; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

        const ssize_t n = readlink(path, link, sizeof(link) - 1);

        if (n > 0 && strncmp(link, "/memfd:" HED_BOARD_NAME, sizeof(HED_BOARD_NAME) + 6) == 0)
            found = fd;
    }
    return found;
}

static void
a_board_shows_what_was_added(void **state)
{
    struct hed_board *b = hed_board_create();
    const uint32_t one = hed_board_add_module(b, "first text", 10);
    const uint32_t two = hed_board_add_module(b, "", 0);
    struct hed_board_kernel *k = hed_board_add_kernel(b, one, HED_ROWS_16, "kernel");
    const struct hed_board_record *r;
    struct hed_board_copy c;
    size_t at = 0;

    assert_int_equal(two, one + 1);
    k->launches = 7;
    assert_int_equal(hed_board_read(own_board(), (uint32_t)getpid() + 1, &c), HED_EFORMAT);
    assert_int_equal(hed_board_read(own_board(), (uint32_t)getpid(), &c), 0);
    r = hed_board_next(&c, &at);
    assert_int_equal(r->kind, HED_BOARD_MODULE);
    assert_memory_equal(((const struct hed_board_module *)r)->text, "first text", 10);
    assert_int_equal(hed_board_next(&c, &at)->kind, HED_BOARD_MODULE);
    r = hed_board_next(&c, &at);
    assert_int_equal(r->kind, HED_BOARD_KERNEL);
    assert_string_equal(((const struct hed_board_kernel *)r)->name, "kernel");
    assert_int_equal(((const struct hed_board_kernel *)r)->launches, 7);
    assert_null(hed_board_next(&c, &at));
    hed_board_copy_free(&c);
    hed_board_free(b);
}

static void
a_full_board_leaves_out_texts_then_modules(void **state)
{
    const size_t size = HED_BOARD_MAX / 2;
    char *text = calloc(1, size);
    struct hed_board *b = hed_board_create();
    struct hed_board_copy c;
    size_t at = 0;

    assert_int_equal(hed_board_add_module(b, text, size), 1);
    assert_int_equal(hed_board_add_module(b, text, size), 2);
    while (hed_board_add_module(b, text, 4096))
        ;
    assert_null(hed_board_add_kernel(b, 1, 0, "kernel"));
    assert_int_equal(hed_board_read(own_board(), (uint32_t)getpid(), &c), 0);
    assert_int_equal(((const struct hed_board_module *)hed_board_next(&c, &at))->has_text, 1);
    assert_int_equal(((const struct hed_board_module *)hed_board_next(&c, &at))->has_text, 0);
    assert_true(hed_board_left_out(&c) >= 3);
    hed_board_copy_free(&c);
    hed_board_free(b);
    free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(accesses_are_told_apart),
    cmocka_unit_test(barriers_and_loops_are_found),
    cmocka_unit_test(what_cannot_run_under_masks_has_a_reason),
    cmocka_unit_test(loops_that_wait_for_lanes_are_refused),
    cmocka_unit_test(a_board_shows_what_was_added),
    cmocka_unit_test(a_full_board_leaves_out_texts_then_modules),
};

HED_UNIT_MAIN(tests)
