/* Single instructions through machine code: the rows of tests/ptx/exec are compiled by ptxas for
 * an architecture, lifted back to PTX, run, and compared with what an H200 gives.
 *
 *     sass_rows PTXAS ARCH GOLDEN warp|baseline SET
 *
 * SET is a set of inputs (i32, f16x2, ...), or all of them. Rows that ARCH (sm_80, ...) does not
 * have are left out: ptxas says which. The lifted text must be PTX that ptxas takes, too. Exits
 * with 77 if there is no ptxas.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/exec/harness.h"
#include "ptx/exec/rows_check.h"
#include "sass/lifted.h"

#define TEXT_MAX ((size_t)16 << 20)

struct tools {
    struct lifted by;
    FILE *golden;
    enum exec_tier tier;
};

static uint64_t in[3 * ROWS_INPUTS];
static uint64_t out[ROWS_A_KERNEL * ROWS_INPUTS];

/* ---- ptxas ----------------------------------------------------------------------------------- */

/* Compiles, and marks the lines with errors; true if there were none. */
static bool
mark_errors(const struct tools *t, const char *text, bool *lines, unsigned count)
{
    struct hed_buf said;
    bool fine, any = false;

    hed_buf_init(&said, TEXT_MAX);
    fine = lifted_assemble(&t->by, text, &said);
    for (const char *at = strstr(hed_buf_cstr(&said), ", line "); at; at = strstr(at, ", line ")) {
        const unsigned long n = strtoul(at += 7, NULL, 10);
        const size_t rest = strcspn(at, "\n");
        const char *error = strstr(at, "error");

        if (n < count && error && error < at + rest)
            any = lines[n] = true;
    }
    if (!fine && !any) {
        printf("%s", hed_buf_cstr(&said));
        exit(1);
    }
    hed_buf_fini(&said);
    return fine;
}

/* Takes the rows out of a kernel that ptxas named. Each is in braces of its own, inside of the
 * kernel's. */
static unsigned
drop_rows(const struct tools *t, struct rows_kernel *k, const char *text, const bool *lines,
          unsigned count)
{
    bool drop[ROWS_A_KERNEL] = {false};
    unsigned braces = 0, kept = 0, n = 1;

    for (const char *p = text; p && n < count; p = strchr(p, '\n'), n++) {
        p += *p == '\n';
        braces += p[0] == '{' && p[1] == '\n';
        if (lines[n] && braces >= 2 && braces < 2 + ROWS_A_KERNEL)
            drop[braces - 2] = true;
    }
    for (unsigned i = 0; i < k->count; i++) {
        if (drop[i])
            printf("not in %s: %s\n", t->by.arch, rows[k->rows[i]].text);
        else
            k->rows[kept++] = k->rows[i];
    }
    n = k->count - kept;
    k->count = kept;
    return n;
}

/* Leaves the cubin of the kernel's rows, without those that do not exist. False if none is left. */
static bool
compile_rows(const struct tools *t, struct rows_kernel *k, unsigned *dropped)
{
    while (k->count) {
        enum { LINES = 4096 };
        bool lines[LINES] = {false};
        char *text = rows_module(k, 1, false);
        const bool done = mark_errors(t, text, lines, LINES);
        const unsigned n = done ? 0 : drop_rows(t, k, text, lines, LINES);

        if (!done && n == 0) {
            printf("%s: not for %s\n%s", k->name, t->by.arch, text);
            exit(1);
        }
        free(text);
        if (done)
            return true;
        *dropped += n;
    }
    return false;
}

/* ---- lifting --------------------------------------------------------------------------------- */

/* False, and the reason printed, if that does not work. */
static bool
lift_rows(const struct tools *t, enum hed_sass_for use, struct hed_buf *ptx)
{
    struct hed_why why = {""};
    const int err = lifted_text(&t->by, use, ptx, &why);

    if (err)
        printf("%s: %s\n", hed_err_text(err), why.text);
    return err == 0;
}

/* Is the text for a GPU what ptxas takes? It may have instructions of sm_80. */
static bool
check_text(const struct tools *t)
{
    struct lifted by = t->by;
    struct hed_buf ptx, said;
    bool fine;

    if (strcmp(by.arch, "sm_75") == 0)
        by.arch = "sm_80";
    hed_buf_init(&ptx, TEXT_MAX);
    hed_buf_init(&said, TEXT_MAX);
    fine = lift_rows(t, HED_SASS_FOR_GPU, &ptx) && lifted_assemble(&by, hed_buf_cstr(&ptx), &said);
    printf("%s", hed_buf_cstr(&said));
    hed_buf_fini(&said);
    hed_buf_fini(&ptx);
    return fine;
}

static unsigned
run_rows(const struct tools *t, const struct rows_kernel *k, const char *text)
{
    const uint64_t params[] = {(uintptr_t)in, (uintptr_t)out};
    const struct exec_launch launch = {.blocks = ROWS_INPUTS / ROWS_BLOCK,
                                       .threads = ROWS_BLOCK,
                                       .params = params,
                                       .size = sizeof(params)};
    unsigned bad = 0;
    struct exec e;

    rows_inputs((enum rows_set)k->set, in);
    memset(out, 0xee, sizeof(out));
    exec_open(&e, text, t->tier);
    e.options.level = 1;
    if (exec_run(&e, k->name, &launch) != 0) {
        printf("%s: %s\n", k->name, e.why.text);
        bad = k->count;
    } else {
        for (unsigned i = 0; i < k->count; i++)
            bad += !rows_check(t->golden, &rows[k->rows[i]], in, &out[i * ROWS_INPUTS]);
    }
    exec_close(&e);
    return bad;
}

/* The number of rows that are wrong. */
static unsigned
check_kernel(const struct tools *t, struct rows_kernel *k, unsigned *dropped)
{
    struct hed_buf ptx;
    unsigned bad;

    if (!compile_rows(t, k, dropped))
        return 0;
    hed_buf_init(&ptx, TEXT_MAX);
    bad = lift_rows(t, HED_SASS_FOR_CPU, &ptx) ? run_rows(t, k, hed_buf_cstr(&ptx)) : k->count;
    hed_buf_fini(&ptx);
    if (bad == 0 && !check_text(t)) {
        printf("%s: the lifted text is not PTX\n", k->name);
        bad = k->count;
    }
    return bad;
}

/* ---- main ------------------------------------------------------------------------------------ */

int
main(int argc, char **argv)
{
    unsigned count, all = 0, bad = 0, dropped = 0;
    struct tools t = {.golden = NULL};

    if (argc != 6) {
        fprintf(stderr, "usage: sass_rows PTXAS GOLDEN warp|baseline SET\n");
        return 2;
    }
    if (!lifted_init(&t.by, argv[1], argv[2])) {
        printf("no ptxas: skipped\n");
        return 77;
    }
    t.tier = strcmp(argv[4], "warp") == 0 ? EXEC_COMPILED : EXEC_BASELINE;
    t.golden = fopen(argv[3], "rb");
    if (!t.golden) {
        perror(argv[3]);
        return 1;
    }

    struct rows_kernel *kernels = rows_kernels(false, &count);

    for (unsigned i = 0; i < count; i++) {
        if (strcmp(argv[5], "all") != 0 && strcmp(rows_set_names[kernels[i].set], argv[5]) != 0)
            continue;
        bad += check_kernel(&t, &kernels[i], &dropped);
        all += kernels[i].count;
    }
    printf("%s: %u rows of %u agree, %u are not in %s\n", argv[5], all - bad, all, dropped,
           argv[2]);
    fclose(t.golden);
    free(kernels);
    return bad || all + dropped == 0 ? 1 : 0;
}
