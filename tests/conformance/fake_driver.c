/* The gpu backend on a fake driver (fake_cuda.c): calls arrive unchanged at the right symbol, and
 * functions that heddle does not know are passed on and counted.
 */
#define HEDDLE_DYNAMIC
#include <heddle.h>

#include "conf.h"

struct fake_seen {
    const char *symbol;
    uint64_t words[12];
    unsigned calls;
};

static struct fake_seen *seen;

static struct heddle_counters
counters(void)
{
    const struct heddle_api *h = heddle_load();
    struct heddle_counters c = {.size = sizeof c};

    CHECK(h, "this is not heddle");
    CHECK_IS(h->read_counters(&c), 0);
    return c;
}

static void
arrived(const char *symbol, uint64_t a, uint64_t b, uint64_t c)
{
    CHECK(seen->symbol && strcmp(seen->symbol, symbol) == 0, "%s arrived, not %s",
          seen->symbol ? seen->symbol : "nothing", symbol);
    CHECK(seen->words[0] == a && seen->words[1] == b && seen->words[2] == c, "%s: other arguments",
          symbol);
    memset(seen, 0, sizeof *seen);
}

static void
calls_arrive(void)
{
    CUdeviceptr p = 0;
    char data[4];
    uint64_t words[11];
    float value = -1.5f;
    uint32_t bits;

    CHECK_IS(CU(cuInit)(17), 0);
    arrived("cuInit", 17, 0, 0);
    CHECK_IS(CU(cuMemAlloc_v2)(&p, 123), 0);
    CHECK_IS(p, 0x7000);
    arrived("cuMemAlloc_v2", (uintptr_t)&p, 123, 0);
    CHECK_IS(CU(cuMemAlloc_v2)(&p, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuMemcpyHtoD_v2)(5, data, 4), 0);
    arrived("cuMemcpyHtoD_v2", 5, (uintptr_t)data, 4);
    CHECK_IS(CU(cuMemcpyHtoD_v2_ptds)(6, data, 3), 0);
    arrived("cuMemcpyHtoD_v2_ptds", 6, (uintptr_t)data, 3);
    memcpy(&bits, &value, sizeof bits);
    CHECK_IS(CU(cuParamSetf)((CUfunction)8, 9, value), 0);
    arrived("cuParamSetf", 8, 9, bits);

    for (int i = 0; i < 2; i++) {
        __typeof__(&cuLaunchKernel) f = i ? CU(cuLaunchKernel_ptsz) : CU(cuLaunchKernel);

        CHECK_IS(f((CUfunction)1, 2, 3, 4, 5, 6, 7, 8, (CUstream)9, (void **)10, (void **)11), 719);
        memcpy(words, seen->words, sizeof words);
        for (uint64_t k = 0; k < 11; k++)
            CHECK_IS(words[k], k + 1);
        arrived(i ? "cuLaunchKernel_ptsz" : "cuLaunchKernel", 1, 2, 3);
    }
}

static void
missing_functions_are_refused(void)
{
    const uint64_t before = counters().unsupported_calls;

    for (int i = 0; i < 3; i++)
        CHECK_IS(CU(cuCtxSynchronize)(), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_IS(CU(cuMemFree_v2)(1), CUDA_ERROR_NOT_SUPPORTED);
    /* A variant that is missing is refused although the plain one exists. */
    CHECK_IS(counters().unsupported_calls, before + 4);
    CHECK_IS(seen->calls, 0);
}

static void *
address(const char *name, int version, cuuint64_t flags, CUresult expected)
{
    CUdriverProcAddressQueryResult status = 77;
    void *p = (void *)1;
    const CUresult r = CU(cuGetProcAddress_v2)(name, &p, version, flags, &status);

    CHECK(r == expected, "%s: %d", name, (int)r);
    CHECK(r == CUDA_SUCCESS || !p, "%s: an address and an error", name);
    CHECK_IS(status, r == CUDA_SUCCESS ? 0 : 1);
    return p;
}

static void
addresses_are_ours_where_we_know_them(void)
{
    CHECK(address("cuInit", 13000, 0, 0) == (void *)CU(cuInit), "cuInit");
    CHECK(address("cuMemAlloc", 13000, 0, 0) == (void *)CU(cuMemAlloc_v2), "cuMemAlloc");
    CHECK(address("cuMemcpyHtoD", 13000, 2, 0) == (void *)CU(cuMemcpyHtoD_v2_ptds), "per thread");
    CHECK(address("cuMemcpyHtoD", 13000, 1, 0) == (void *)CU(cuMemcpyHtoD_v2), "legacy");
    CHECK(address("cuGetProcAddress", 13000, 0, 0) == (void *)CU(cuGetProcAddress_v2), "itself");
    /* A name that NVIDIA's library refuses is refused, although we export it. */
    (void)address("cuMemFree", 13000, 0, CUDA_ERROR_NOT_FOUND);
    (void)address("cuNothing", 13000, 0, CUDA_ERROR_NOT_FOUND);
    CHECK_IS(counters().foreign_pointers, 0);
}

static void
what_is_newer_is_handed_through(void)
{
    int (*alloc)(uint64_t *, size_t, double, int, int, int, int, int, int, int, int);
    int (*unheard)(int);
    uint64_t p = 0;

    *(void **)&alloc = address("cuMemAlloc", 99000, 0, 0);
    *(void **)&unheard = address("cuTomorrow", 13000, 0, 0);
    CHECK((void *)alloc != (void *)CU(cuMemAlloc_v2), "ours has another signature");
    CHECK_IS(counters().foreign_pointers, 2);
    CHECK_IS(counters().foreign_calls, 0);
    CHECK_IS(alloc(&p, 1000, 0.5, 1, 2, 3, 4, 5, 6, 7, 8), 0);
    CHECK_IS(p, 1036);
    arrived("alloc_of_tomorrow", 1000, 0, 0);
    CHECK_IS(unheard(5), 6);
    CHECK_IS(unheard(6), 7);
    CHECK_IS(counters().foreign_calls, 3);
    CHECK(address("cuTomorrow", 13000, 0, 0) == (void *)unheard, "another stub");
    CHECK_IS(counters().foreign_pointers, 2);
}

static void
tables_are_passed_on(void)
{
    struct {
        size_t bytes;
        int (*functions[3])(int);
    } const *table = NULL;
    const void *again = NULL;
    const CUuuid id = {"a private table"};
    const CUuuid other = {"another table  "};
    const uint64_t before = counters().foreign_calls;
    void *fake = dlopen(getenv("HEDDLE_DRIVER"), RTLD_NOW);
    int (*direct)(const void **, const void *);
    const void *theirs = NULL;

    *(void **)&direct = dlsym(fake, "cuGetExportTable");
    CHECK_IS(direct(&theirs, &id), 0);
    CHECK_IS(CU(cuGetExportTable)((const void **)&table, &id), 0);
    CHECK(table == theirs, "a copy, not the table");
    CHECK_IS(table->bytes, 32);
    CHECK(!table->functions[1], "something in an empty place");
    CHECK_IS(table->functions[0](21), 0);
    arrived("private_function", 21, 0, 0);
    CHECK_IS(table->functions[2](21), 22);
    CHECK_IS(CU(cuGetExportTable)(&again, &id), 0);
    CHECK(again == table, "another table");
    CHECK_IS(CU(cuGetExportTable)(&again, &other), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(counters().export_tables, 2);
    CHECK_IS(counters().foreign_calls, before);
}

static int
check_driver(void)
{
    void *fake = dlopen(getenv("HEDDLE_DRIVER"), RTLD_NOW);
    int version = 0;

    CHECK(fake, "%s", dlerror());
    seen = dlsym(fake, "fake_seen");
    CHECK_IS(CU(cuDriverGetVersion)(&version), 0);
    CHECK_IS(version, 99000);
    arrived("cuDriverGetVersion", (uintptr_t)&version, 0, 0);
    calls_arrive();
    missing_functions_are_refused();
    addresses_are_ours_where_we_know_them();
    what_is_newer_is_handed_through();
    tables_are_passed_on();
    return 0;
}

static unsigned
occurrences(const char *text, const char *what)
{
    unsigned n = 0;

    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

int
main(int argc, char **argv)
{
    const char *fake = getenv("HED_FAKE_CUDA");
    const char *const env[] = {"HEDDLE_GPU", "gpu", "HEDDLE_DRIVER", fake, "HEDDLE_LOG",
                               "warn",       NULL};
    char text[8192];
    int status;

    if (argc > 1)
        return check_driver();
    CHECK(fake, "HED_FAKE_CUDA is not set");
    status = conf_again("again", text, sizeof text, env);
    CHECK(status == 0, "%d: %s", status, text);
    CHECK_IS(occurrences(text, "cuCtxSynchronize is not supported"), 1);
    CHECK_IS(occurrences(text, "cuMemFree_v2 is not supported"), 1);
    return 0;
}
