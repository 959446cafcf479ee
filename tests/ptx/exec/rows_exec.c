/* Runs the rows through the compiler, in this process.
 *
 *     rows_exec warp|baseline GOLDEN SET    compares with GOLDEN, the hashes from an H200
 *     rows_exec warp|baseline --against DUMP SET [SEED]
 *                                         prints which inputs differ from rows_cuda --dump
 *
 * SET is a set of inputs (i32, f16x2, ...), "all" of these, or "new" for rows that no H200 can run:
 * they compare instructions with others and give 0. Approximations are compared with functions of
 * libm, within what PTX allows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "rows.h"

static const char *const set_names[ROWS_SETS] = {"i16",    "i32", "i64",  "f16", "bf16", "f16x2",
                                                 "bf16x2", "f32", "trig", "f64", "f32x2"};
static uint64_t in[3 * ROWS_INPUTS];
static uint64_t out[ROWS_A_KERNEL * ROWS_INPUTS];

static bool
find_golden(FILE *f, const char *text, uint64_t *hash)
{
    char line[512];

    rewind(f);
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strlen(line) > 17 && strcmp(line + 17, text) == 0) {
            *hash = strtoull(line, NULL, 16);
            return true;
        }
    }
    return false;
}

static void
complain(const struct row *r, unsigned bad, unsigned i, uint64_t got, uint64_t want)
{
    printf("%s: %u differ; (%" PRIx64 ", %" PRIx64 ", %" PRIx64 "): %" PRIx64 " instead of %" PRIx64
           "\n",
           r->text, bad, in[3 * i], in[3 * i + 1], in[3 * i + 2], got, want);
}

static bool
check_against(FILE *dump, unsigned row, const uint64_t *got)
{
    static uint64_t want[ROWS_INPUTS];
    const struct row *r = &rows[row];
    unsigned bad = 0;
    unsigned first = 0;

    if (fseek(dump, (long)(row * sizeof(want)), SEEK_SET) ||
        fread(want, sizeof(want), 1, dump) != 1)
        return false;
    for (unsigned i = 0; i < ROWS_INPUTS; i++) {
        if (r->kind ? !rows_near(r, got[i], want[i]) : got[i] != want[i])
            first = bad++ ? first : i;
    }
    if (bad)
        complain(r, bad, first, got[first], want[first]);
    return bad == 0;
}

static bool
check_reference(const struct row *r, const uint64_t *got)
{
    unsigned bad = 0;
    unsigned first = 0;
    uint64_t wanted = 0;

    for (unsigned i = 0; i < ROWS_INPUTS; i++) {
        const uint64_t want = rows_reference(r, &in[3 * i]);

        if (!rows_near(r, got[i], want)) {
            first = bad ? first : i;
            wanted = bad ? wanted : want;
            bad++;
        }
    }
    if (bad)
        complain(r, bad, first, got[first], wanted);
    return bad == 0;
}

static bool
check_zero(const struct row *r, const uint64_t *got)
{
    for (unsigned i = 0; i < ROWS_INPUTS; i++) {
        if (got[i]) {
            complain(r, 1, i, got[i], 0);
            return false;
        }
    }
    return true;
}

static bool
check_golden(FILE *golden, const struct row *r, const uint64_t *got)
{
    uint64_t want;

    if (!find_golden(golden, r->text, &want)) {
        printf("%s: no golden hash\n", r->text);
        return false;
    }
    if (rows_hash(got) == want)
        return true;
    printf("%s: not what an H200 gives\n", r->text);
    return false;
}

static unsigned
run_kernel(struct exec *e, const struct rows_kernel *k, FILE *file, bool is_dump)
{
    const uint64_t params[] = {(uintptr_t)in, (uintptr_t)out};
    const struct exec_launch launch = {.blocks = ROWS_INPUTS / ROWS_BLOCK,
                                       .threads = ROWS_BLOCK,
                                       .params = params,
                                       .size = sizeof(params)};
    unsigned bad = 0;

    rows_inputs((enum rows_set)k->set, in);
    memset(out, 0xee, sizeof(out));
    if (exec_run(e, k->name, &launch) != 0) {
        printf("%s: %s\n", k->name, e->why.text);
        return 1;
    }
    if (e->tier == EXEC_COMPILED && e->why.text[0]) {
        printf("%s: not in the mask shape: %s\n", k->name, e->why.text);
        return 1;
    }
    for (unsigned i = 0; i < k->count; i++) {
        const struct row *r = &rows[k->rows[i]];
        const uint64_t *got = &out[i * ROWS_INPUTS];

        if (is_dump)
            bad += !check_against(file, k->rows[i], got);
        else if (r->kind)
            bad += !check_reference(r, got);
        else if (r->on_new)
            bad += !check_zero(r, got);
        else
            bad += !check_golden(file, r, got);
    }
    return bad;
}

int
main(int argc, char **argv)
{
    const bool is_dump = argc > 2 && strcmp(argv[2], "--against") == 0;
    unsigned bad = 0;
    unsigned count, ran = 0;
    struct exec e;

    if (argc < 4 + is_dump || argc > 4 + 2 * is_dump) {
        fprintf(stderr, "usage: rows_exec warp|baseline GOLDEN|--against DUMP SET [SEED]\n");
        return 2;
    }

    const char *set = argv[3 + is_dump];
    const bool on_new = strcmp(set, "new") == 0;
    FILE *file = fopen(argv[2 + is_dump], "rb");
    struct rows_kernel *kernels = rows_kernels(on_new, &count);
    char *text = rows_module(kernels, count, on_new);

    rows_seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
    if (!file) {
        perror(argv[2 + is_dump]);
        return 1;
    }
    exec_open(&e, text, strcmp(argv[1], "warp") == 0 ? EXEC_COMPILED : EXEC_BASELINE);
    e.options.level = 1;
    for (unsigned i = 0; i < count; i++) {
        if (!on_new && strcmp(set, "all") != 0 && strcmp(set_names[kernels[i].set], set) != 0)
            continue;
        ran++;
        bad += run_kernel(&e, &kernels[i], file, is_dump);
    }
    exec_close(&e);
    fclose(file);
    free(text);
    free(kernels);
    if (ran == 0)
        printf("no rows in %s\n", set);
    return bad || ran == 0 ? 1 : 0;
}
