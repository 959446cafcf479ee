/* How long does it take to lift machine code and to parse what comes out, and how much memory?
 *
 *     bench_sass_lift CUBIN...
 *
 * Prints a line for the kernel of each size class that is largest: instructions, microseconds for
 * each of them (lifting, parsing), bytes of text for each, and the most memory that the process
 * had while it worked on this kernel alone. The processor's time counts, so other load does not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "kernel/fatbin/file.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/text/parse.h"
#include "kernel/sass/lift.h"

#define OPEN_MAX_BYTES ((size_t)256 << 20)
#define TEXT_MAX ((size_t)256 << 20)
#define INST_BYTES 16
#define CLASSES 8 /* each twice the one before */
#define FIRST_CLASS 300

struct candidate {
    const char *path;
    uint32_t kernel;
    uint64_t insts;
};

static double
microseconds_since(uint64_t start)
{
    return (double)(hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / 1000;
}

/* The program of a cubin, or NULL. */
static struct hed_sass_program *
open_program(const char *path, struct hed_arena *arena)
{
    struct hed_sass_program *p = NULL;
    struct hed_why why = {""};
    struct hed_bytes b;

    if (hed_fatbin_map(path, &b, &why) != 0 || hed_sass_open(b, arena, &p, &why) != 0)
        fprintf(stderr, "%s: %s\n", path, why.text);
    return p;
}

static void
consider(struct candidate *best, const char *path)
{
    struct hed_arena arena;
    const struct hed_sass_program *p;

    hed_arena_init(&arena, OPEN_MAX_BYTES);
    p = open_program(path, &arena);
    for (uint32_t i = 0; p && i < p->cubin.kernel_count; i++) {
        const uint64_t insts = p->cubin.kernels[i].code / INST_BYTES;
        unsigned c = 0;

        while (c + 1 < CLASSES && insts >= (uint64_t)FIRST_CLASS << (c + 1))
            c++;
        if (insts > best[c].insts)
            best[c] = (struct candidate){path, i, insts};
    }
    hed_arena_fini(&arena);
}

static void
measure(const struct candidate *x)
{
    struct hed_ptx_module m;
    struct hed_arena arena;
    struct hed_why why = {""};
    struct hed_buf text;
    struct rusage usage;
    uint64_t start;
    double lifting, parsing;

    hed_arena_init(&arena, OPEN_MAX_BYTES);
    hed_buf_init(&text, TEXT_MAX);

    const struct hed_sass_program *p = open_program(x->path, &arena);

    start = hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (!p || hed_sass_lift(p, x->kernel, HED_SASS_FOR_CPU, &text, &why) != 0) {
        printf("%8llu instructions: %s\n", (unsigned long long)x->insts, why.text);
        exit(0);
    }
    lifting = microseconds_since(start);
    start = hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    hed_ptx_module_init(&m, HED_PTX_CEILING);
    if (hed_ptx_parse(&m, (const char *)text.data, text.size) != 0)
        exit(1);
    parsing = microseconds_since(start);
    getrusage(RUSAGE_SELF, &usage);
    printf("%8llu instructions: lifting %.2f us, parsing %.2f us, %.0f bytes of text for each; "
           "%.1f MB\n",
           (unsigned long long)x->insts, lifting / (double)x->insts, parsing / (double)x->insts,
           (double)text.size / (double)x->insts, (double)usage.ru_maxrss / 1024);
    exit(0);
}

int
main(int argc, char **argv)
{
    struct candidate best[CLASSES] = {{0}};

    for (int i = 1; i < argc; i++)
        consider(best, argv[i]);
    for (unsigned c = 0; c < CLASSES; c++) {
        pid_t child;

        fflush(stdout);
        if (!best[c].path)
            continue;
        /* A process of its own: the most memory is that of one kernel. */
        child = fork();
        if (child == 0)
            measure(&best[c]);
        if (child < 0 || waitpid(child, NULL, 0) < 0)
            return 1;
    }
    return 0;
}
