/* Runs each kernel of a cubin lifted, and the same kernel from PTX, and compares what they wrote.
 *
 *   lift_run PTX CUBIN
 *
 * Kernels are `extern "C" __global__ void name(unsigned *out, const unsigned *in, unsigned n)` with
 * WORDS words in each array. MORE words may follow as parameters. Prints a line for each kernel
 * that differs, and exits with 1 then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "kernel/sass/lift.h"
#include "ptx/exec/harness.h"

#define WORDS 16384u
#define MORE 8185u /* as many as CUDA allows */
#define FILE_MAX ((size_t)64 << 20)
#define COMPILED_MOST ((size_t)256 << 10) /* bytes of text: LLVM takes minutes for more */
#define BLOCKS 3
#define THREADS 96

static void
read_file(const char *path, struct hed_buf *out)
{
    FILE *f = fopen(path, "rb");
    char chunk[65536];
    size_t n;

    if (!f) {
        perror(path);
        exit(2);
    }
    hed_buf_init(out, FILE_MAX);
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        hed_buf_add(out, chunk, n);
    fclose(f);
}

/* Fills the variables of a lifted module as whoever loads it does. */
static void
fill_variables(struct exec *e, const struct hed_sass_program *p)
{
    for (uint32_t i = 0; i < p->var_count; i++)
        memcpy(exec_var(e, p->vars[i].name), p->vars[i].init.data, p->vars[i].init.size);
    for (uint32_t i = 0; i < p->pointer_count; i++) {
        const struct hed_sass_pointer *x = &p->pointers[i];
        const uintptr_t to =
            x->to == HED_SASS_NUMBER ? 0 : (uintptr_t)exec_var(e, p->vars[x->to].name);
        const uint64_t value = to + (uint64_t)x->addend;

        memcpy((char *)exec_var(e, p->vars[x->var].name) + x->at, &value, sizeof value);
    }
}

struct arguments {
    uint32_t *out;
    const uint32_t *in;
    uint32_t n;
    uint32_t more[MORE];
};

/* True if it ran to its end. p is NULL for PTX that was not lifted. */
static bool
run_text(const char *text, const char *kernel, const struct hed_sass_program *p,
         enum exec_tier tier, uint32_t *out)
{
    static uint32_t in[WORDS];
    struct arguments a = {out, in, WORDS, {0}};
    const struct exec_launch launch = {.blocks = BLOCKS,
                                       .threads = THREADS,
                                       .params = &a,
                                       .size = sizeof a,
                                       .dynamic_shared = 8192,
                                       .meets = true};
    uint32_t x = 2463534242;
    struct exec e;
    int err;

    for (uint32_t i = 0; i < WORDS; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        in[i] = x;
        a.more[i % MORE] = x;
    }
    memset(out, 0, WORDS * sizeof *out);
    exec_open(&e, text, tier);
    if (p)
        fill_variables(&e, p);
    err = exec_run(&e, kernel, &launch);
    if (err != 0)
        printf("%s%s, %s: %s, trap %u at line %u\n", kernel, p ? " lifted" : "",
               tier == EXEC_COMPILED ? "compiled" : "baseline", e.why.text, e.trap, e.trap_line);
    exec_close(&e);
    return err == 0;
}

static bool
is_same(const char *kernel, const char *tier, const uint32_t *right, const uint32_t *got)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (right[i] != got[i]) {
            printf("%s, %s: word %u is 0x%x instead of 0x%x\n", kernel, tier, i, got[i], right[i]);
            return false;
        }
    return true;
}

static bool
compare_kernel(const char *ptx, const struct hed_sass_program *p, uint32_t index)
{
    static uint32_t right[WORDS], got[WORDS];
    const struct hed_bytes name = p->cubin.kernels[index].name;
    struct hed_why why = {""};
    struct hed_buf text;
    char kernel[256];
    bool good, compiles;

    (void)snprintf(kernel, sizeof kernel, "%.*s", (int)name.size, (const char *)name.data);
    hed_buf_init(&text, FILE_MAX);
    good = hed_sass_lift(p, index, HED_SASS_FOR_CPU, &text, &why) == 0;
    if (!good)
        printf("%s: %s\n", kernel, why.text);
    compiles = text.size < COMPILED_MOST;
    good = good && run_text(ptx, kernel, NULL, compiles ? EXEC_COMPILED : EXEC_BASELINE, right) &&
           (!compiles || (run_text(hed_buf_cstr(&text), kernel, p, EXEC_COMPILED, got) &&
                          is_same(kernel, "compiled", right, got))) &&
           run_text(hed_buf_cstr(&text), kernel, p, EXEC_BASELINE, got) &&
           is_same(kernel, "baseline", right, got);
    hed_buf_fini(&text);
    return good;
}

int
main(int argc, char **argv)
{
    struct hed_sass_program *p;
    struct hed_buf ptx, cubin;
    struct hed_arena arena;
    struct hed_why why = {""};
    unsigned bad = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: lift_run PTX CUBIN\n");
        return 2;
    }
    read_file(argv[1], &ptx);
    read_file(argv[2], &cubin);
    hed_arena_init(&arena, FILE_MAX);
    if (hed_sass_open((struct hed_bytes){(const uint8_t *)cubin.data, cubin.size}, &arena, &p,
                      &why) != 0) {
        printf("%s: %s\n", argv[2], why.text);
        return 1;
    }
    for (uint32_t i = 0; i < p->cubin.kernel_count; i++)
        bad += !compare_kernel(hed_buf_cstr(&ptx), p, i);
    printf("%u kernels, %u differ\n", p->cubin.kernel_count, bad);
    return bad || p->cubin.kernel_count == 0 ? 1 : 0;
}
