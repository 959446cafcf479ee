/* A program that tells heddle what it is doing, if heddle is there: the trace shows its phases, and
 * only the interesting one is recorded.
 *
 *     marks                                     without heddle: it works all the same
 *     heddle run --trace marks.hed -- marks     with it
 */
#define HEDDLE_DYNAMIC
#include <dlfcn.h>
#include <heddle.h>
#include <stdint.h>
#include <stdio.h>

/* The few functions of CUDA's driver that it needs. */
static struct {
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);
    int (*set)(void *context);
    int (*alloc)(uint64_t *at, size_t size);
    int (*fill)(uint64_t at, unsigned char byte, size_t count);
    int (*sync)(void);
} cuda;

static int
load_cuda(void)
{
    static const char *const names[] = {"cuInit",          "cuDevicePrimaryCtxRetain",
                                        "cuCtxSetCurrent", "cuMemAlloc_v2",
                                        "cuMemsetD8_v2",   "cuCtxSynchronize"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void **slot = (void **)&cuda;

    for (size_t i = 0; library && i < sizeof names / sizeof *names; i++)
        slot[i] = dlsym(library, names[i]);
    return library ? 0 : -1;
}

int
main(void)
{
    void *context;
    uint64_t at = 0;
    int failed = load_cuda();

    if (failed) {
        printf("there is no CUDA driver here\n");
        return 0;
    }

    const struct heddle_api *heddle = heddle_load();
    struct heddle_counters counters = {.size = sizeof counters};

    failed |= cuda.init(0) || cuda.retain(&context, 0) || cuda.set(context);
    failed |= cuda.alloc(&at, 1 << 20);
    if (heddle)
        heddle->range_push("fill");
    for (int i = 0; i < 8; i++)
        failed |= cuda.fill(at, (unsigned char)i, 1 << 20);
    failed |= cuda.sync();
    if (heddle) {
        heddle->range_pop();
        heddle->mark("the rest is not recorded");
        heddle->record(0);
    }
    for (int i = 0; i < 1000; i++)
        failed |= cuda.sync();
    if (heddle && heddle->read_counters(&counters) == 0)
        printf("heddle %s: %llu records in the trace\n", heddle->version(),
               (unsigned long long)counters.trace_records);
    return failed;
}
