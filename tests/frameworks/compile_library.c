/* Gives the compiler the kernels of a library, as the CPU GPU does, to see that it bears them all.
 *
 *     compile_library [-a ARCH] [-n COUNT] [-s SKIP] [-t SECONDS] [-m MIB] [-v] FILE...
 *
 * Takes the machine code for sm_ARCH (80), lifts each kernel and compiles it in a process of its
 * own with limits of processor time and memory, like a compiler of heddle's. -n compiles at most
 * COUNT kernels of each file, spread over all of them by size; -v names every kernel.
 *
 * Prints how many were compiled, refused, or ended their process, and the most memory that one
 * took.
 * Exits with 1 if a process crashed. For people: libraries of a framework take hours.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/thread.h"
#include "kernel/fatbin/fatbin.h"
#include "kernel/fatbin/file.h"
#include "kernel/fatbin/find.h"
#include "kernel/ptx/lower/compile.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/features.h"
#include "kernel/ptx/text/parse.h"
#include "kernel/sass/lift.h"

#define CUBIN_MAX ((size_t)2 << 30)
#define TEXT_MAX ((size_t)256 << 20)
#define OBJECT_MAX ((size_t)512 << 20)
#define STACK ((size_t)64 << 20)

enum outcome { COMPILED, NOT_LIFTED, REFUSED, TOO_LONG, TOO_LARGE, CRASHED, OUTCOMES };

static const char *const names[OUTCOMES] = {"compiled", "not lifted", "refused",
                                            "too long", "too large",  "crashed"};

struct job { /* a kernel: where it is, and how large */
    struct hed_fatbin_entry entry;
    uint32_t kernel;
    uint64_t code;
};

struct all {
    struct job *jobs;
    size_t count, room;
    unsigned arch;
    rlim_t seconds, bytes;
    bool verbose;
    unsigned seen[OUTCOMES];
    long peak;        /* KiB */
    double processor; /* seconds */
};

struct result { /* in memory that the processes share */
    int outcome;
    uint32_t instructions;
    struct hed_why why;
    char name[200];
};

static struct result *result;

/* ---- one kernel, in a process of its own ----------------------------------------------------- */

static void
note_name(struct hed_bytes name)
{
    snprintf(result->name, sizeof result->name, "%.*s", (int)name.size, (const char *)name.data);
}

static void *
compile_job(void *arg)
{
    const struct job *j = arg;
    struct hed_sass_program *p = NULL;
    struct hed_ptx_module m;
    struct hed_arena arena;
    struct hed_bytes image;
    struct hed_buf text, object;
    char features[512];
    struct hed_ptx_options o = {
        .rows = HED_ROWS_32, .level = 2, .check_alignment = true, .features = features};

    result->outcome = NOT_LIFTED;
    hed_ptx_features(features, sizeof features);
    hed_arena_init(&arena, CUBIN_MAX);
    hed_buf_init(&text, TEXT_MAX);
    hed_buf_init(&object, OBJECT_MAX);
    if (hed_fatbin_image(&j->entry, &arena, &image, &result->why) != 0 ||
        hed_sass_open(image, &arena, &p, &result->why) != 0)
        return NULL;
    note_name(p->cubin.kernels[j->kernel].name);
    if (hed_sass_lift(p, j->kernel, HED_SASS_FOR_CPU, &text, &result->why) != 0)
        return NULL;
    result->outcome = REFUSED;
    hed_ptx_module_init(&m, HED_PTX_CEILING);
    if (hed_ptx_parse(&m, (const char *)text.data, text.size) != 0) {
        hed_why_set(&result->why, "the lifted text cannot be parsed");
        return NULL;
    }
    for (const struct hed_ptx_func *f = m.funcs; f; f = f->next) {
        if (!f->is_entry || !f->has_body)
            continue;
        result->instructions = f->ninsts;
        if (hed_ptx_compile(&m, f, &o, &object, &result->why) == 0)
            result->outcome = COMPILED;
    }
    return NULL;
}

static _Noreturn void
be_compiler(const struct all *a, const struct job *j)
{
    const struct hed_thread_how how = {.stack = STACK, .faults = true};
    const struct rlimit time = {a->seconds, a->seconds + 5}, memory = {a->bytes, a->bytes};
    const struct rlimit none = {0};

    (void)setrlimit(RLIMIT_CPU, &time);
    (void)setrlimit(RLIMIT_DATA, &memory);
    (void)setrlimit(RLIMIT_CORE, &none);
    _exit(hed_thread_wait(&how, compile_job, (void *)(uintptr_t)j) == 0 ? 0 : 1);
}

static enum outcome
outcome_of(const struct all *a, int status, const struct rusage *used)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return (enum outcome)result->outcome;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return TOO_LONG;
    /* LLVM aborts if it gets no memory. */
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
        (rlim_t)used->ru_maxrss * 1024 > a->bytes / 2)
        return TOO_LARGE;
    return CRASHED;
}

static void
run_job(struct all *a, const struct job *j)
{
    struct rusage used = {0};
    int status = 0;
    pid_t pid;

    memset(result, 0, sizeof *result);
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        be_compiler(a, j);
    if (pid < 0 || wait4(pid, &status, 0, &used) < 0) {
        perror("fork");
        exit(2);
    }

    const enum outcome o = outcome_of(a, status, &used);
    const double seconds = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6;

    a->seen[o]++;
    a->processor += seconds;
    if (used.ru_maxrss > a->peak)
        a->peak = used.ru_maxrss;
    if (a->verbose || o == CRASHED || o == TOO_LONG || o == TOO_LARGE)
        printf("%-10s %8.2f s %6ld MiB %7u instructions  %s  %s\n", names[o], seconds,
               used.ru_maxrss >> 10, result->instructions, result->name,
               o == CRASHED && WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                                   : result->why.text);
}

/* ---- which kernels --------------------------------------------------------------------------- */

static void
add_job(struct all *a, const struct job *j)
{
    if (a->count == a->room) {
        a->room = a->room ? 2 * a->room : 1024;
        a->jobs = realloc(a->jobs, a->room * sizeof *a->jobs);
        if (!a->jobs)
            exit(2);
    }
    a->jobs[a->count++] = *j;
}

static void
add_entry(struct all *a, const struct hed_fatbin_entry *e)
{
    struct hed_sass_program *p = NULL;
    struct hed_arena arena;
    struct hed_bytes image;

    if (e->kind != HED_FATBIN_CUBIN || e->arch.number != a->arch)
        return;
    hed_arena_init(&arena, CUBIN_MAX);
    if (hed_fatbin_image(e, &arena, &image, NULL) == 0 &&
        hed_sass_open(image, &arena, &p, NULL) == 0)
        for (uint32_t i = 0; i < p->cubin.kernel_count; i++)
            add_job(a, &(struct job){*e, i, p->cubin.kernels[i].code});
    hed_arena_fini(&arena);
}

static int
find_jobs(struct all *a, const char *path)
{
    struct hed_why why = {""};
    struct hed_fatbin_entry e;
    struct hed_fatbin_walk w;
    struct hed_found found;
    struct hed_bytes file;
    struct hed_find f;

    if (hed_fatbin_map(path, &file, &why) != 0) {
        fprintf(stderr, "%s: %s\n", path, why.text);
        return 2;
    }
    hed_find_init(&f, file, HED_FIND_SECTIONS);
    while (hed_find_next(&f, &found, &why) == 1)
        if (found.kind == HED_FOUND_FATBIN && hed_fatbin_walk(found.bytes, &w, &why) == 0)
            while (hed_fatbin_next(&w, &e, &why) == 1)
                add_entry(a, &e);
    return 0;
}

static int
compare_sizes(const void *x, const void *y)
{
    const struct job *a = x, *b = y;

    return a->code < b->code ? -1 : a->code > b->code;
}

static int
compile_file(struct all *a, const char *path, size_t most, size_t skip)
{
    size_t done = 0;

    a->count = 0;
    if (find_jobs(a, path) != 0)
        return 2;
    qsort(a->jobs, a->count, sizeof *a->jobs, compare_sizes);
    if (most == 0 || most > a->count)
        most = a->count;
    for (size_t i = skip; i < most; i++, done++)
        run_job(a, &a->jobs[most > 1 ? i * (a->count - 1) / (most - 1) : 0]);
    printf("%s: %zu of %zu kernels\n", path, done, a->count);
    return 0;
}

int
main(int argc, char **argv)
{
    struct all a = {.arch = 80, .seconds = 120, .bytes = (rlim_t)4 << 30};
    size_t most = 0, skip = 0;
    int c, code = 0;

    while ((c = getopt(argc, argv, "a:n:s:t:m:v")) != -1) {
        const unsigned long long n = optarg ? strtoull(optarg, NULL, 10) : 0;

        if (c == 'a')
            a.arch = (unsigned)n;
        else if (c == 'n')
            most = (size_t)n;
        else if (c == 's')
            skip = (size_t)n;
        else if (c == 't')
            a.seconds = (rlim_t)n;
        else if (c == 'm')
            a.bytes = (rlim_t)n << 20;
        else if (c == 'v')
            a.verbose = true;
        else
            return 2;
    }
    result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (result == MAP_FAILED)
        return 2;
    for (int i = optind; i < argc && code == 0; i++)
        code = compile_file(&a, argv[i], most, skip);
    for (int i = 0; i < OUTCOMES; i++)
        printf("%s%u %s", i ? ", " : "", a.seen[i], names[i]);
    printf("; %.0f s of processor time, at most %ld MiB\n", a.processor, a.peak >> 10);
    return code ? code : a.seen[CRASHED] > 0;
}
