/* Runs all rows through libcuda. `rows_cuda --dump FILE` writes all results, `--compare FILE`
 * reports what differs from such a file, and `--hash FILE` writes the golden data, one line per
 * row. A number after FILE is the seed of other inputs (rows.h); golden data have none.
 *
 * Plain C and dlopen, so that it builds wherever there is a compiler:
 *   cc -O1 rows_cuda.c rows.c -lm -ldl -o rows_cuda
 * The file: for every row that runs on sm_90, in order, ROWS_INPUTS words.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static struct {
    int (*cuInit)(unsigned);
    int (*cuDeviceGet)(int *, int);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuModuleLoadData)(void **, const void *);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuMemAlloc_v2)(uint64_t *, size_t);
    int (*cuMemcpyHtoD_v2)(uint64_t, const void *, size_t);
    int (*cuMemcpyDtoH_v2)(void *, uint64_t, size_t);
    int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **, void **);
} cuda;

static void
check_call(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(1);
    }
}

#define CALL(name, ...) check_call(cuda.name(__VA_ARGS__), #name)

static void
load_cuda(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);

    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        exit(77);
    }
#define FIND(name)                            \
    *(void **)&cuda.name = dlsym(lib, #name); \
    check_call(cuda.name ? 0 : -1, #name)
    FIND(cuInit);
    FIND(cuDeviceGet);
    FIND(cuDevicePrimaryCtxRetain);
    FIND(cuCtxSetCurrent);
    FIND(cuModuleLoadData);
    FIND(cuModuleGetFunction);
    FIND(cuMemAlloc_v2);
    FIND(cuMemcpyHtoD_v2);
    FIND(cuMemcpyDtoH_v2);
    FIND(cuLaunchKernel);
}

/* out: ROWS_INPUTS words for every row. */
static void
run_all(uint64_t *out)
{
    static uint64_t in[3 * ROWS_INPUTS];
    static uint64_t some[ROWS_A_KERNEL * ROWS_INPUTS];
    unsigned count;
    struct rows_kernel *kernels = rows_kernels(false, &count);
    char *text = rows_module(kernels, count, false);
    int device;
    void *context, *module;
    uint64_t d_in, d_out;

    CALL(cuInit, 0);
    CALL(cuDeviceGet, &device, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);
    CALL(cuModuleLoadData, &module, text);
    CALL(cuMemAlloc_v2, &d_in, sizeof(in));
    CALL(cuMemAlloc_v2, &d_out, sizeof(some));
    for (unsigned i = 0; i < count; i++) {
        const struct rows_kernel *k = &kernels[i];
        void *params[] = {&d_in, &d_out};
        void *function;

        rows_inputs((enum rows_set)k->set, in);
        CALL(cuModuleGetFunction, &function, module, k->name);
        CALL(cuMemcpyHtoD_v2, d_in, in, sizeof(in));
        CALL(cuLaunchKernel, function, ROWS_INPUTS / ROWS_BLOCK, 1, 1, ROWS_BLOCK, 1, 1, 0, NULL,
             params, NULL);
        CALL(cuMemcpyDtoH_v2, some, d_out, sizeof(some));
        for (unsigned r = 0; r < k->count; r++)
            memcpy(&out[(size_t)k->rows[r] * ROWS_INPUTS], &some[r * ROWS_INPUTS], ROWS_INPUTS * 8);
    }
    free(text);
    free(kernels);
}

static unsigned
compare_results(const uint64_t *got, const uint64_t *want)
{
    unsigned bad_rows = 0;

    for (unsigned r = 0; r < rows_count; r++) {
        unsigned bad = 0;
        unsigned first = 0;

        for (unsigned i = 0; i < ROWS_INPUTS && !rows[r].on_new; i++) {
            const uint64_t g = got[(size_t)r * ROWS_INPUTS + i];
            const uint64_t w = want[(size_t)r * ROWS_INPUTS + i];

            if (rows[r].kind ? !rows_near(&rows[r], g, w) : g != w)
                first = bad++ ? first : i;
        }
        if (bad) {
            const size_t at = (size_t)r * ROWS_INPUTS + first;

            printf("%s: %u differ, input %u: %" PRIx64 " instead of %" PRIx64 "\n", rows[r].text,
                   bad, first, got[at], want[at]);
            bad_rows++;
        }
    }
    return bad_rows;
}

int
main(int argc, char **argv)
{
    const size_t words = (size_t)rows_count * ROWS_INPUTS;
    uint64_t *out = calloc(words, 8);
    uint64_t *kept = calloc(words, 8);

    if (argc < 3 || argc > 4 || !out || !kept) {
        fprintf(stderr, "usage: rows_cuda --dump|--compare|--hash FILE [SEED]\n");
        return 2;
    }

    const bool reads = strcmp(argv[1], "--compare") == 0;
    FILE *f = fopen(argv[2], reads ? "rb" : "wb");

    if (!f || (reads && fread(kept, 8, words, f) != words)) {
        perror(argv[2]);
        return 1;
    }
    rows_seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    load_cuda();
    run_all(out);
    if (reads)
        return compare_results(out, kept) ? 1 : 0;
    if (strcmp(argv[1], "--dump") == 0) {
        fwrite(out, 8, words, f);
    } else {
        for (unsigned r = 0; r < rows_count; r++) {
            if (!rows[r].kind && !rows[r].on_new)
                fprintf(f, "%016" PRIx64 " %s\n", rows_hash(&out[(size_t)r * ROWS_INPUTS]),
                        rows[r].text);
        }
    }
    return fclose(f) ? 1 : 0;
}
