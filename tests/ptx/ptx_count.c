/* Parses PTX files and prints what is in them. A tool for the tests, not a command for users.
 *
 *     ptx_count [-p] [-q] [-a WORD]... FILE...
 *
 * Prints one line per file: bytes, functions, kernels, variables, instructions, forms, refused
 * functions. Then it checks the round trip: printed text must parse again and print the same. -p
 * prints the text, -q only failures, -a allows unknown instructions that begin with WORD. Exits
 * with 1 if a file does not parse, fails the round trip, or has an unknown instruction.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/text/parse.h"
#include "kernel/ptx/text/print.h"

#define ALLOWED_MAX 32

static const char *allowed[ALLOWED_MAX];
static int nallowed;
static bool print_text;
static bool quiet;

static char *
read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;

    if (!f)
        return NULL;
    if (fseek(f, 0, SEEK_END) == 0) {
        const long n = ftell(f);

        rewind(f);
        text = n >= 0 ? malloc((size_t)n + 1) : NULL;
        if (text)
            *size = fread(text, 1, (size_t)n, f);
    }
    fclose(f);
    return text;
}

static bool
is_allowed(const char *text)
{
    for (int i = 0; i < nallowed; i++) {
        if (strncmp(text, allowed[i], strlen(allowed[i])) == 0)
            return true;
    }
    return false;
}

/* Reports every refused instruction that is not allowed. */
static bool
report_refused(const char *path, const struct hed_ptx_module *m)
{
    bool good = true;

    for (const struct hed_ptx_func *f = m->funcs; f; f = f->next) {
        for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
            const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

            if (s->kind != HED_PTX_STMT_INST || !i->is_refused || is_allowed(i->form->text))
                continue;
            printf("%s:%u: %s: %s\n", path, s->line, i->form->refused, i->form->text);
            good = false;
        }
    }
    return good;
}

static bool
parse_file(const char *path, struct hed_ptx_module *m, const char *text, size_t size)
{
    struct hed_buf log;

    hed_ptx_module_init(m, HED_PTX_CEILING);

    const int err = hed_ptx_parse(m, text, size);

    if (err == 0)
        return true;
    hed_buf_init(&log, 1 << 20);
    hed_ptx_log(m, &log);
    printf("%s: error %d\n%s", path, err, hed_buf_cstr(&log));
    hed_buf_fini(&log);
    return false;
}

/* parse(print(m)) prints the same text. */
static bool
comes_round(const char *path, const struct hed_ptx_module *m)
{
    struct hed_ptx_module again;
    struct hed_buf first;
    struct hed_buf second;
    bool good = false;

    hed_buf_init(&first, (size_t)1 << 31);
    hed_buf_init(&second, (size_t)1 << 31);
    hed_ptx_print(m, &first);
    if (print_text)
        fwrite(first.data, 1, first.size, stdout);
    if (parse_file(path, &again, hed_buf_cstr(&first), first.size)) {
        hed_ptx_print(&again, &second);
        good = first.err == 0 && first.size == second.size &&
               memcmp(first.data, second.data, first.size) == 0 && m->ninsts == again.ninsts;
    }
    if (!good)
        printf("%s: does not come round\n", path);
    hed_ptx_module_fini(&again);
    hed_buf_fini(&first);
    hed_buf_fini(&second);
    return good;
}

static bool
count_file(const char *path)
{
    struct hed_ptx_module m;
    size_t size = 0;
    char *text = read_file(path, &size);
    bool good = false;

    if (!text) {
        fprintf(stderr, "%s: cannot read\n", path);
        return false;
    }

    const uint64_t start = hed_now_ns();

    if (parse_file(path, &m, text, size)) {
        const double s = (double)(hed_now_ns() - start) * 1e-9;

        good = report_refused(path, &m);
        good = comes_round(path, &m) && good;
        if (!quiet && !print_text)
            printf("%s: bytes %zu funcs %u kernels %u vars %u insts %llu forms %u refused %u "
                   "memory %zu speed %.1f MB/s\n",
                   path, size, m.nfuncs, m.nentries, m.nvars, (unsigned long long)m.ninsts,
                   m.nforms, m.nrefused, m.arena.used, (double)size / s / 1e6);
    }
    hed_ptx_module_fini(&m);
    free(text);
    return good;
}

int
main(int argc, char **argv)
{
    bool good = true;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-p") == 0)
            print_text = true;
        else if (strcmp(argv[i], "-q") == 0)
            quiet = true;
        else if (strcmp(argv[i], "-a") == 0 && i + 1 < argc && nallowed < ALLOWED_MAX)
            allowed[nallowed++] = argv[++i];
        else
            good = count_file(argv[i]) && good;
    }
    return good ? 0 : 1;
}
