/* Tests of the order of products of floats: each instruction comes behind what it reads, tiles are
 * together, and results are those of the baseline tier, bit for bit. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/ssa.h"
#include "kernel/ptx/pass/tiles.h"
#include "ptx/exec/harness.h"

#define SIDE 8 /* rows and columns of sums */
#define SUMS (SIDE * SIDE)
#define THREADS 64
#define TEXT_MOST (1u << 17)

/* What the text has, apart from the products: */
enum odd {
    NOTHING,
    READS_A_SUM,       /* a sum is read between two steps */
    TAKES_A_SUM_TWICE, /* two products are added to the same sum */
    MULTIPLIES_A_SUM,  /* a sum is a factor */
    GUARDED,           /* a product is added where a guard holds */
    MEETS,             /* a barrier between two steps */
    TRADES,            /* sums change their places between two steps */
    SAME_FACTORS,      /* two sums get the same products */
    ODDS,
};

static char text[TEXT_MOST];
static size_t used;

__attribute__((format(printf, 1, 2))) static void
add(const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text + used, TEXT_MOST - used, fmt, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < TEXT_MOST - used);
    used += (size_t)n;
}

static void
add_odd(enum odd odd)
{
    if (odd == READS_A_SUM)
        add("st.global.f32 [%%rd3+4], %%s9;\n");
    if (odd == TAKES_A_SUM_TWICE)
        add("fma.rn.f32 %%s11, %%x1, %%y2, %%s10; fma.rn.f32 %%s10, %%x2, %%y1, %%s10;\n");
    if (odd == MULTIPLIES_A_SUM)
        add("fma.rn.f32 %%s12, %%s13, %%y2, %%s12;\n");
    if (odd == GUARDED)
        add("@%%p1 fma.rn.f32 %%s14, %%x1, %%y1, %%s14;\n");
    if (odd == MEETS)
        add("bar.sync 0;\n");
    if (odd == TRADES)
        add("mov.f32 %%t, %%s20; mov.f32 %%s20, %%s21; mov.f32 %%s21, %%t;\n");
}

/* %rd3: the thread's place in memory, with two words; a column of words follows behind 512. */
static void
write_kernel(enum odd odd, unsigned steps)
{
    used = 0;
    add(".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
        ".reg .pred %%p<3>; .reg .b32 %%r<9>; .reg .b64 %%rd<9>; .reg .f32 %%t;\n"
        ".reg .f32 %%x<%u>, %%y<%u>, %%s<%u>;\n"
        "ld.param.u64 %%rd1, [in]; ld.param.u64 %%rd2, [out]; mov.u32 %%r1, %%tid.x;\n"
        "mul.wide.u32 %%rd4, %%r1, 8; add.u64 %%rd3, %%rd2, %%rd4; add.u64 %%rd5, %%rd1, %%rd4;\n"
        "setp.gt.u32 %%p1, %%r1, 20;\n",
        SIDE, SIDE, SUMS);
    for (unsigned i = 0; i < SUMS; i++)
        add("mov.f32 %%s%u, 0f00000000;\n", i);
    for (unsigned k = 0; k < steps; k++) {
        for (unsigned i = 0; i < SIDE; i++)
            add("ld.global.f32 %%x%u, [%%rd5+%u]; ld.global.f32 %%y%u, [%%rd5+%u];\n", i,
                4 * (2 * i + k), i, 4 * (3 * i + 17 * k));
        for (unsigned i = 0; i < SIDE; i++)
            for (unsigned j = 0; j < SIDE; j++)
                add("fma.rn.f32 %%s%u, %%x%u, %%y%u, %%s%u;\n", SIDE * i + j, i,
                    odd == SAME_FACTORS ? j / 2 : j, SIDE * i + j);
        if (k == steps / 2)
            add_odd(odd);
    }
    for (unsigned i = 0; i < SUMS; i++)
        add("st.global.f32 [%%rd3+%u], %%s%u;\n", 8 * THREADS * (i + 1), i);
    add("ret; }\n");
}

/* ---- the order ------------------------------------------------------------------------------- */

struct seen {
    const bool *made, *later;
    bool ok;
};

static void
note_made(void *arg, const struct hed_ptx_reg **reg)
{
    ((bool *)arg)[(*reg)->id] = true;
}

static void
check_read(void *arg, const struct hed_ptx_reg **reg)
{
    struct seen *s = arg;

    s->ok &= s->made[(*reg)->id] || !s->later[(*reg)->id];
}

/* A block has as many instructions as before, so one that is there twice has replaced another. */
static void
check_each_is_there_once(const struct hed_flow_block *b)
{
    for (uint32_t i = 0; i < b->ninsts; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_ptr_not_equal(b->insts[i], b->insts[k]);
}

/* Every instruction comes behind those that make what it reads, in the same block. */
static void
check_order(const struct hed_flow *f)
{
    for (uint32_t b = 0; b < f->nblocks; b++) {
        bool *made = calloc(f->nvalues + 1, sizeof(bool));
        bool *later = calloc(f->nvalues + 1, sizeof(bool));
        struct seen s = {made, later, true};

        assert_true(made && later);
        check_each_is_there_once(&f->blocks[b]);
        for (uint32_t i = 0; i < f->blocks[b].ninsts; i++)
            hed_flow_each_write(f->blocks[b].insts[i], note_made, later);
        for (uint32_t i = 0; i < f->blocks[b].ninsts; i++) {
            hed_flow_each_read(f->blocks[b].insts[i], check_read, &s);
            hed_flow_each_write(f->blocks[b].insts[i], note_made, made);
        }
        assert_true(s.ok);
        assert_memory_equal(made, later, f->nvalues);
        free(made);
        free(later);
    }
}

/* The longest run of fmas that add to no more sums than a tile has. */
static uint32_t
longest_tile(const struct hed_flow *f, uint32_t most)
{
    const struct hed_flow_block *b = &f->blocks[0];
    uint32_t longest = 0;

    for (uint32_t first = 0; first < b->ninsts; first++) {
        uint32_t sums = 0, n = 0;

        for (uint32_t i = first; i < b->ninsts && b->insts[i]->form->op == HED_PTX_OP_FMA; i++) {
            bool goes_on = false;

            for (uint32_t k = first; k < i; k++)
                goes_on |= b->insts[k]->operands[0].reg == b->insts[i]->operands[3].reg;
            sums += !goes_on;
            if (sums > most)
                break;
            n++;
        }
        longest = n > longest ? n : longest;
    }
    return longest;
}

static uint32_t
order_as(struct hed_tile_size size, uint32_t *longest)
{
    const char *why = NULL;
    struct hed_flow flow;
    struct hed_ssa ssa;
    struct exec e;
    struct hed_tiles tiles;

    exec_open(&e, text, EXEC_COMPILED);
    assert_int_equal(hed_flow_init(&flow, e.module.funcs, &why), 0);
    assert_int_equal(hed_ssa_init(&ssa, &flow, &why), 0);
    assert_int_equal(hed_tiles_order(&flow, &ssa, size, &tiles), 0);
    check_order(&flow);
    *longest = longest_tile(&flow, size.rows * size.columns);
    hed_flow_fini(&flow);
    exec_close(&e);
    return tiles.moved;
}

static uint32_t
order(unsigned rows, unsigned columns, uint32_t *longest)
{
    return order_as((struct hed_tile_size){rows, columns, 3 * rows * columns}, longest);
}

static void
sums_get_all_of_their_products_at_once(void **state)
{
    uint32_t longest;

    (void)state;
    write_kernel(NOTHING, 6);
    assert_int_equal(order(4, 2, &longest), 6 * SUMS);
    assert_int_equal(longest, 6 * 4 * 2);
    assert_int_equal(order(2, 2, &longest), 6 * SUMS);
    assert_int_equal(longest, 6 * 2 * 2);
    write_kernel(NOTHING, 1);
    assert_int_equal(order(4, 2, &longest), 0);
}

static void
sums_that_fit_into_registers_stay_as_they_are(void **state)
{
    uint32_t longest;

    (void)state;
    write_kernel(NOTHING, 6);
    assert_int_equal(order_as((struct hed_tile_size){4, 2, SUMS}, &longest), 0);
    assert_int_equal(order_as((struct hed_tile_size){4, 2, SUMS - 1}, &longest), 6 * SUMS);
}

static void
what_reads_a_sum_comes_behind_it(void **state)
{
    uint32_t longest;

    (void)state;
    for (enum odd odd = READS_A_SUM; odd < ODDS; odd++) {
        write_kernel(odd, 6);
        assert_true(order(4, 2, &longest) > 0);
    }
}

static void
results_are_those_of_the_baseline_tier(void **state)
{
    const size_t words = 2 * THREADS * (SUMS + 2);
    uint32_t *in = calloc(words, 4), *out[2] = {calloc(words, 4), calloc(words, 4)};

    (void)state;
    assert_true(in && out[0] && out[1]);
    for (size_t i = 0; i < words; i++)
        in[i] = i % 1009 == 7  ? 0xffc12345 /* a NaN that is not the GPU's */
                : i % 997 == 3 ? 0x7f800000 /* infinite */
                               : 0x3f000000 + (uint32_t)(i * 2654435761u >> 9); /* 1/2 to 4 */
    for (enum odd odd = NOTHING; odd < ODDS; odd++) {
        write_kernel(odd, 9);
        for (unsigned tier = 0; tier < 2; tier++) {
            void *params[] = {in, out[tier]};
            const struct exec_launch launch = {.threads = THREADS,
                                               .params = params,
                                               .size = sizeof(params),
                                               .meets = odd == MEETS};
            struct exec e;

            memset(out[tier], 0xcc, words * 4);
            exec_open(&e, text, tier == 0 ? EXEC_BASELINE : EXEC_COMPILED);
            assert_int_equal(exec_run(&e, "k", &launch), 0);
            assert_string_equal(e.why.text, "");
            exec_close(&e);
        }
        assert_memory_equal(out[0], out[1], words * 4);
    }
    free(in);
    free(out[0]);
    free(out[1]);
}

/* What LLVM has made of the kernel for a processor with these features. */
static char *
optimised_text(const char *features)
{
    char path[512];
    struct hed_buf object;
    struct exec e;
    FILE *file;
    char *all = calloc(1, TEXT_MOST * 16);

    assert_non_null(all);
    assert_non_null(getenv("HED_SCRATCH"));
    snprintf(path, sizeof(path), "%s/k.32.optimised.ll", getenv("HED_SCRATCH"));
    hed_buf_init(&object, 16 << 20);
    exec_open(&e, text, EXEC_COMPILED);
    e.options.rows = HED_ROWS_32;
    e.options.features = features;
    e.options.dump = getenv("HED_SCRATCH");
    assert_int_equal(hed_ptx_compile(&e.module, e.module.funcs, &e.options, &object, &e.why), 0);
    exec_close(&e);
    hed_buf_fini(&object);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(all, 1, TEXT_MOST * 16 - 1, file) > 0);
    fclose(file);
    return all;
}

/* Whatever processor this is: LLVM may be told of any. It must not join the parts again. */
static void
small_registers_get_eight_lanes_at_a_time(void **state)
{
    char *small, *large;

    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    write_kernel(NOTHING, 6);
    small = optimised_text("+avx,+avx2,+fma");
    large = optimised_text("+avx,+avx2,+fma,+avx512f,+avx512dq,+avx512cd,+avx512bw,+avx512vl");
    assert_non_null(strstr(small, "@llvm.fma.v8f32("));
    assert_null(strstr(small, "@llvm.fma.v32f32("));
    assert_non_null(strstr(large, "@llvm.fma.v32f32("));
    free(small);
    free(large);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_get_all_of_their_products_at_once),
    cmocka_unit_test(sums_that_fit_into_registers_stay_as_they_are),
    cmocka_unit_test(what_reads_a_sum_comes_behind_it),
    cmocka_unit_test(results_are_those_of_the_baseline_tier),
    cmocka_unit_test(small_registers_get_eight_lanes_at_a_time),
};

HED_UNIT_MAIN(tests)
