/* The program of table.h: loads a runtime, runs one area, prints the lines. */
#include "table.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    void *library;
    void *found;      /* by the last table_find() */
    bool keep;        /* the last error is not cleared */
    const char *name; /* of the last call, for table_show() */
    const char *label;
    int calls;
    int (*peek)(void);
    int (*take)(void);
    const char *(*text)(int);
    int (*mark)(int, const char **); /* cuGetErrorName, or NULL */
} run;

static const struct {
    const char *name;
    void (*calls)(void);
} areas[] = {
    {"lazy", table_lazy},           {"devices", table_devices},
    {"errors", table_errors},       {"faults", table_faults},
    {"streams", table_streams},     {"events", table_events},
    {"memory", table_memory},       {"host", table_host},
    {"copies", table_copies},       {"symbols", table_symbols},
    {"arrays", table_arrays},       {"textures", table_textures},
    {"functions", table_functions}, {"launches", table_launches},
    {"libraries", table_libraries}, {"graphs", table_graphs},
    {"nodes", table_nodes},         {"execs", table_execs},
    {"captures", table_captures},   {"pools", table_pools},
    {"others", table_others},       {"registration", table_registration},
    {"firsts", table_firsts},       {"contexts", table_contexts},
    {"threads", table_threads},     {"forks", table_forks},
    {"ends", table_ends},           {"nodriver", table_nothing},
    {"nodevice", table_nothing},    {"batches", table_batches},
    {"variants", table_variants},   {"outside", table_outside},
    {"random", table_random},       {"edges", table_edges},
    {"newcomers", table_newcomers},
};

bool
table_find(const char *name)
{
    run.found = dlsym(run.library, name);
    if (run.mark) {
        const char *unused;

        run.mark(100000 + run.calls, &unused);
    }
    return run.found != NULL;
}

void *
table_function(void)
{
    return run.found;
}

int
table_edition(void)
{
    int version = 0;

    if (table_find("cudaRuntimeGetVersion"))
        ((int (*)(int *))table_function())(&version);
    return version / 1000;
}

const char *
table_error(int error)
{
    const char *name = run.text(error);

    /* Each runtime has its own words for what it does not know. */
    return name && strncmp(name, "cuda", 4) == 0 ? name : "unknown";
}

void
table_keep(bool keep)
{
    run.keep = keep;
}

int
table_quiet(int result)
{
    run.take();
    return result;
}

int
table_result(const char *name, const char *label, int result)
{
    run.name = name;
    run.label = label;
    if (run.mark) {
        const char *unused;

        run.mark(200000 + run.calls++, &unused);
    }
    if (result == TABLE_ABSENT) {
        printf("%s, %s: absent\n", name, label);
    } else {
        const int last = run.peek();

        printf("%s, %s: %s (%d)", name, label, table_error(result), result);
        printf(", last %s\n", last == result ? "the same" : table_error(last));
        if (!run.keep)
            run.take();
    }
    fflush(stdout);
    return result;
}

bool
table_is_real(void)
{
    return getenv("HED_TABLE_REAL") != NULL;
}

void *
table_stranger(void *address)
{
    return table_is_real() ? NULL : address;
}

void
table_show(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printf("%s, %s > ", run.name, run.label);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    fflush(stdout);
}

static bool
load_runtime(const char *path)
{
    run.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!run.library) {
        fprintf(stderr, "cudart_table: %s\n", dlerror());
        return false;
    }
    run.peek = dlsym(run.library, "cudaPeekAtLastError");
    run.take = dlsym(run.library, "cudaGetLastError");
    run.text = dlsym(run.library, "cudaGetErrorName");
    /* In a trace of the driver's calls, these tell to which call of the table they belong. */
    if (getenv("HED_TABLE_MARK")) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);

        run.mark = driver ? dlsym(driver, "cuGetErrorName") : NULL;
    }
    return run.peek && run.take && run.text;
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--areas") == 0) {
        for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
            puts(areas[i].name);
        return 0;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: cudart_table LIBCUDART AREA | --areas\n");
        return 2;
    }
    if (!load_runtime(argv[1]))
        return 2;
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++) {
        if (strcmp(areas[i].name, argv[2]) == 0) {
            areas[i].calls();
            puts("end");
            return 0;
        }
    }
    fprintf(stderr, "cudart_table: there is no area '%s'\n", argv[2]);
    return 2;
}
