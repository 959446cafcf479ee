/* Runs the kernels of a program of this folder from its PTX, through libcuda.
 *
 *     cu_run FILE.ptx FILE.cu
 *
 * The launches are the RUN and TOGETHER lines of the source. Prints what the program prints that
 * nvcc makes from the source (run.cuh). Exits with 0, or with 1 if anything but a kernel failed.
 */
#include "../conformance/conf.h"

struct run {
    char name[64];
    unsigned blocks;
    unsigned threads;
    unsigned shared;
    unsigned words;
    bool together;
};

#define MUST(name, ...)                                           \
    do {                                                          \
        const CUresult r_ = CU(name)(__VA_ARGS__);                \
                                                                  \
        CHECK(r_ == CUDA_SUCCESS, "%s gives %d", #name, (int)r_); \
    } while (0)

static char *
read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text;
    long size;

    CHECK(f, "cannot open %s", path);
    CHECK(fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0, "cannot read %s", path);
    rewind(f);
    text = malloc((size_t)size + 1);
    CHECK(text && fread(text, 1, (size_t)size, f) == (size_t)size, "cannot read %s", path);
    text[size] = 0;
    fclose(f);
    return text;
}

/* Prints every word, eight per line, or a hash of every 32 words if there are many, as run.cuh
 * does. */
static void
print_words(const struct run *r, const unsigned *words)
{
    const unsigned step = r->words > 256 ? 32 : 8;

    for (unsigned i = 0; i < r->words; i += step) {
        unsigned hash = 2166136261u;

        printf("%s[%u]:", r->name, i);
        for (unsigned j = i; j < i + step && j < r->words; j++) {
            if (step == 8)
                printf(" %08x", words[j]);
            hash = (hash ^ words[j]) * 16777619u;
        }
        if (step > 8)
            printf(" hash %08x", hash);
        printf("\n");
    }
}

static CUresult
launch_run(CUfunction f, const struct run *r, void **parameters)
{
    if (r->shared > 48 * 1024)
        MUST(cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
             (int)r->shared);
    if (r->together)
        return CU(cuLaunchCooperativeKernel)(f, r->blocks, 1, 1, r->threads, 1, 1, r->shared, NULL,
                                             parameters);
    return CU(cuLaunchKernel)(f, r->blocks, 1, 1, r->threads, 1, 1, r->shared, NULL, parameters,
                              NULL);
}

static bool
run_one(CUmodule module, const struct run *r)
{
    unsigned *host = malloc(r->words * sizeof *host);
    unsigned n = r->words;
    CUdeviceptr out;
    CUfunction f;
    void *parameters[] = {&out, &n};
    CUresult e;

    CHECK(host, "no memory");
    MUST(cuModuleGetFunction, &f, module, r->name);
    MUST(cuMemAlloc_v2, &out, r->words * sizeof *host);
    MUST(cuMemsetD32_v2, out, 0, r->words);
    e = launch_run(f, r, parameters);
    if (e == CUDA_SUCCESS)
        e = CU(cuCtxSynchronize)();
    fflush(stdout);
    if (e == CUDA_SUCCESS) {
        MUST(cuMemcpyDtoH_v2, host, out, r->words * sizeof *host);
        MUST(cuMemFree_v2, out);
        print_words(r, host);
    } else {
        printf("%s: error %d\n", r->name, (int)e);
    }
    fflush(stdout);
    free(host);
    return e == CUDA_SUCCESS;
}

int
main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    char *rest;
    char *line;

    CHECK(argc == 3, "cu_run FILE.ptx FILE.cu");
    rest = read_file(argv[2]);
    MUST(cuInit, 0);
    MUST(cuDevicePrimaryCtxRetain, &context, 0);
    MUST(cuCtxSetCurrent, context);
    MUST(cuModuleLoadData, &module, read_file(argv[1]));
    while ((line = strsep(&rest, "\n"))) {
        struct run r = {.together = strncmp(line, "    TOGETHER(", 13) == 0};
        const char *list = strchr(line, '(');

        if ((!r.together && strncmp(line, "    RUN(", 8) != 0) ||
            sscanf(list, "(%63[^,], %u, %u, %u, %u)", r.name, &r.blocks, &r.threads, &r.shared,
                   &r.words) != 5)
            continue;
        if (!run_one(module, &r))
            break;
    }
    return 0;
}
