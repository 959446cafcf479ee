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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "rows_check.h"

static uint64_t in[3 * ROWS_INPUTS];
static uint64_t out[ROWS_A_KERNEL * ROWS_INPUTS];

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
        rows_complain(r, in, bad, first, got[first], want[first]);
    return bad == 0;
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
        else
            bad += !rows_check(file, r, in, got);
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
        if (!on_new && strcmp(set, "all") != 0 && strcmp(rows_set_names[kernels[i].set], set) != 0)
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
