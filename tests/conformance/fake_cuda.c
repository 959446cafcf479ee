/* Plays NVIDIA's libcuda.so.1: a handful of functions that remember how they were called. It has
 * one function in a version newer than heddle's spec, one that heddle does not know, and a private
 * table. fake_driver.c asks it what arrived.
 */
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct fake_seen {
    const char *symbol; /* the last function that was called */
    uint64_t words[12]; /* its arguments */
    unsigned calls;
};

typedef int (*anything)(void);

EXPORT struct fake_seen fake_seen;

static int
seen(const char *symbol, uint64_t a, uint64_t b, uint64_t c)
{
    fake_seen.symbol = symbol;
    fake_seen.words[0] = a;
    fake_seen.words[1] = b;
    fake_seen.words[2] = c;
    fake_seen.calls++;
    return 0;
}

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes);
EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
EXPORT int cuMemcpyHtoD_v2_ptds(uint64_t to, const void *from, size_t bytes);
EXPORT int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void *stream, void **params, void **extra);
EXPORT int cuLaunchKernel_ptsz(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, void *stream,
                               void **params, void **extra);
EXPORT int cuParamSetf(void *f, int offset, float value);
EXPORT int cuGetExportTable(const void **table, const void *id);
EXPORT int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                               int *status);

int
cuInit(unsigned flags)
{
    return seen("cuInit", flags, 0, 0);
}

int
cuDriverGetVersion(int *version)
{
    *version = 99000;
    return seen("cuDriverGetVersion", (uintptr_t)version, 0, 0);
}

int
cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    if (bytes == 0)
        return 1;
    *address = 0x7000;
    return seen("cuMemAlloc_v2", (uintptr_t)address, bytes, 0);
}

int
cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    return seen("cuMemcpyHtoD_v2", to, (uintptr_t)from, bytes);
}

int
cuMemcpyHtoD_v2_ptds(uint64_t to, const void *from, size_t bytes)
{
    return seen("cuMemcpyHtoD_v2_ptds", to, (uintptr_t)from, bytes);
}

static int
remember_launch(const char *symbol, const uint64_t *words)
{
    memcpy(fake_seen.words, words, 11 * sizeof *words);
    fake_seen.symbol = symbol;
    fake_seen.calls++;
    return 719;
}

int
cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
               unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    const uint64_t words[] = {
        (uintptr_t)f,    gx, gy, gz, bx, by, bz, shared, (uintptr_t)stream, (uintptr_t)params,
        (uintptr_t)extra};

    return remember_launch("cuLaunchKernel", words);
}

int
cuLaunchKernel_ptsz(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    const uint64_t words[] = {
        (uintptr_t)f,    gx, gy, gz, bx, by, bz, shared, (uintptr_t)stream, (uintptr_t)params,
        (uintptr_t)extra};

    return remember_launch("cuLaunchKernel_ptsz", words);
}

int
cuParamSetf(void *f, int offset, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return seen("cuParamSetf", (uintptr_t)f, (uint64_t)offset, bits);
}

/* Newer than heddle's spec: a third argument, and twelve more on the stack. */
static int
alloc_of_tomorrow(uint64_t *address, size_t bytes, double weight, int a, int b, int c, int d, int e,
                  int f, int g, int h)
{
    *address = bytes + (uint64_t)weight + (uint64_t)(a + b + c + d + e + f + g + h);
    return seen("alloc_of_tomorrow", bytes, 0, 0);
}

static int
unheard_of(int a)
{
    return a + 1;
}

static int
private_function(int a)
{
    return seen("private_function", (uint64_t)a, 0, 0);
}

static struct {
    size_t bytes;
    anything functions[3];
} table = {sizeof table, {(anything)private_function, 0, (anything)unheard_of}};

int
cuGetExportTable(const void **out, const void *id)
{
    static const unsigned char known[16] = "a private table";

    if (memcmp(id, known, 16) != 0)
        return 1;
    *out = &table;
    return 0;
}

int
cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    static const struct {
        const char *name;
        int since;
        uint64_t flags;
        anything function;
    } known[] = {
        {"cuInit", 2000, 0, (anything)cuInit},
        {"cuMemAlloc", 99000, 0, (anything)alloc_of_tomorrow},
        {"cuMemAlloc", 3020, 0, (anything)cuMemAlloc_v2},
        {"cuMemcpyHtoD", 7000, 2, (anything)cuMemcpyHtoD_v2_ptds},
        {"cuMemcpyHtoD", 3020, 0, (anything)cuMemcpyHtoD_v2},
        {"cuTomorrow", 1000, 0, (anything)unheard_of},
        {"cuGetProcAddress", 12000, 0, (anything)cuGetProcAddress_v2},
    };

    *out = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) != 0 || version < known[i].since ||
            (known[i].flags && !(flags & known[i].flags)))
            continue;
        memcpy(out, &known[i].function, sizeof *out);
        if (status)
            *status = 0;
        return 0;
    }
    if (status)
        *status = 1;
    return 500;
}
