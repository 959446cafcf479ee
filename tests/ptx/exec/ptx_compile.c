/* Compiles every kernel of the given PTX files and reports those that cannot be compiled.
 *
 *   ptx_compile [-v] [-c] [-r ROWS] [-O LEVEL] [-d FOLDER] [-f FEATURES] FILE...
 *   ptx_compile --after=PASS [-r ROWS] FILE...
 *
 * -v also prints CPU times and why the mask shape refused, -c makes confined code, -r says how
 * threads lie in warps (enum hed_rows), -d writes LLVM's text of each kernel to the folder, -f
 * compiles for a machine with other features than this one. --after prints the kernels after flow,
 * ssa or uniform, and compiles nothing.
 *
 * Exits with 1 if a kernel fails for another reason than an instruction that is not supported, or
 * if LLVM's code for it is wrong.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernel/ptx/lower/compile.h"
#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/show.h"
#include "kernel/ptx/pass/ssa.h"
#include "kernel/ptx/pass/tidy.h"
#include "kernel/ptx/pass/uniform.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/features.h"
#include "kernel/ptx/text/parse.h"

struct totals {
    unsigned good, refused, bad;
    double ms;
};

static double
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
compile_kernel(const struct hed_ptx_module *m, const struct hed_ptx_func *f,
               const struct hed_ptx_options *o, bool verbose, struct totals *t)
{
    struct hed_buf object;
    struct hed_why why;
    const double start = now_ms();

    hed_buf_init(&object, 256 << 20);

    const int err = hed_ptx_compile(m, f, o, &object, &why);
    const double ms = now_ms() - start;

    t->ms += ms;
    if (err == 0)
        t->good++;
    else if (err == HED_ENOTSUP && !strstr(why.text, "wrong"))
        t->refused++;
    else
        t->bad++;
    if (verbose && err == 0)
        printf("%8.1f ms %8zu bytes %6u instructions  %s  %s\n", ms, object.size, f->ninsts,
               f->name, why.text);
    if (err != 0)
        printf("%s\n", why.text);
    hed_buf_fini(&object);
}

/* Prints a kernel after a pass. */
static void
show_after(const struct hed_ptx_func *f, const struct hed_ptx_options *o, const char *pass)
{
    const bool ssa_too = strcmp(pass, "flow") != 0, all = strcmp(pass, "uniform") == 0;
    const bool tidied = all || strcmp(pass, "tidy") == 0;
    struct hed_tidied did;
    const char *why = "no memory";
    struct hed_uniforms u;
    struct hed_flow flow;
    struct hed_ssa ssa;
    struct hed_buf text;
    int err = hed_flow_init(&flow, f, &why);

    if (err == 0 && ssa_too)
        err = hed_ssa_init(&ssa, &flow, &why);
    if (err == 0 && tidied)
        err = hed_tidy(&flow, &ssa, &did);
    if (err == 0 && all)
        err = hed_uniforms_init(&u, &flow, &ssa, o->rows);
    hed_buf_init(&text, 256 << 20);
    if (err == 0)
        hed_flow_show(&flow, all ? &u : NULL, &text);
    printf("%s\n%s", f->name, err == 0 ? hed_buf_cstr(&text) : why);
    hed_buf_fini(&text);
    hed_flow_fini(&flow);
}

static int
compile_file(const char *path, const struct hed_ptx_options *o, bool verbose, const char *after,
             struct totals *t)
{
    FILE *file = fopen(path, "r");
    struct hed_ptx_module m;
    struct hed_buf text;
    char chunk[65536];
    size_t n;

    if (!file) {
        perror(path);
        return 1;
    }
    hed_buf_init(&text, (size_t)1 << 30);
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        hed_buf_add(&text, chunk, n);
    fclose(file);
    hed_ptx_module_init(&m, HED_PTX_CEILING);
    if (hed_ptx_parse(&m, hed_buf_cstr(&text), text.size) != 0) {
        printf("%s: does not parse\n", path);
        t->bad++;
    } else {
        for (const struct hed_ptx_func *f = m.funcs; f; f = f->next) {
            if (f->is_entry && f->has_body && after)
                show_after(f, o, after);
            else if (f->is_entry && f->has_body)
                compile_kernel(&m, f, o, verbose, t);
        }
    }
    hed_buf_fini(&text);
    hed_ptx_module_fini(&m);
    return 0;
}

int
main(int argc, char **argv)
{
    struct hed_ptx_options o = {.level = 2, .check_alignment = true};
    static const struct option words[] = {{"after", required_argument, NULL, 'a'}, {0}};
    struct totals t = {0};
    const char *after = NULL;
    char features[512];
    bool verbose = false;
    int c, err = 0;

    hed_ptx_features(features, sizeof(features));
    o.features = features;
    while ((c = getopt_long(argc, argv, "vcr:O:d:f:", words, NULL)) != -1) {
        if (c == 'a')
            after = optarg;
        verbose = verbose || c == 'v';
        o.confined = o.confined || c == 'c';
        if (c == 'r')
            o.rows = (enum hed_rows)strtol(optarg, NULL, 10);
        if (c == 'f')
            o.features = optarg;
        if (c == 'O')
            o.level = (int)strtol(optarg, NULL, 10);
        if (c == 'd')
            o.dump = optarg;
    }
    for (int i = optind; i < argc; i++)
        err |= compile_file(argv[i], &o, verbose, after, &t);
    if (!after)
        printf("%u compiled, %u refused, %u failed, %.0f ms\n", t.good, t.refused, t.bad, t.ms);
    return err || t.bad ? 1 : 0;
}
