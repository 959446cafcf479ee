/* What this processor can do. See features.h. */
#include "ptx/run/features.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

struct features {
    char *text;
    size_t size;
};

static void
add_feature(const struct features *f, bool there, const char *name)
{
    const size_t n = strlen(f->text);

    if (there)
        snprintf(f->text + n, f->size - n, "%s+%s", n ? "," : "", name);
}

#if defined(__aarch64__)

static void
find_features(const struct features *f)
{
    const unsigned long caps = getauxval(AT_HWCAP);

    add_feature(f, caps & (1ul << 8), "lse");
    add_feature(f, caps & (1ul << 7), "crc");
    add_feature(f, (caps & (1ul << 9)) && (caps & (1ul << 10)), "fullfp16");
    add_feature(f, caps & (1ul << 12), "rdm");
    add_feature(f, caps & (1ul << 15), "rcpc");
    add_feature(f, caps & (1ul << 20), "dotprod");
}

#elif defined(__x86_64__)

static void
find_features(const struct features *f)
{
    unsigned a = 0, b = 0, c = 0, d = 0;

    if (__get_cpuid(1, &a, &b, &c, &d)) {
        add_feature(f, c & (1u << 0), "sse3");
        add_feature(f, c & (1u << 9), "ssse3");
        add_feature(f, c & (1u << 19), "sse4.1");
        add_feature(f, c & (1u << 20), "sse4.2");
        add_feature(f, c & (1u << 23), "popcnt");
        add_feature(f, c & (1u << 13), "cx16");
    }
    /* The others also need the system to save registers; __builtin_cpu_supports checks that. */
    add_feature(f, __builtin_cpu_supports("avx"), "avx");
    add_feature(f, __builtin_cpu_supports("avx") && (c & (1u << 29)), "f16c");
    add_feature(f, __builtin_cpu_supports("fma"), "fma");
    add_feature(f, __builtin_cpu_supports("avx2"), "avx2");
    add_feature(f, __builtin_cpu_supports("bmi"), "bmi");
    add_feature(f, __builtin_cpu_supports("bmi2"), "bmi2");
    if (__get_cpuid(0x80000001, &a, &b, &c, &d))
        add_feature(f, c & (1u << 5), "lzcnt");
    /* Not avx512*: LLVM 19 merges and, or and select into one instruction there and gets a sign
     * wrong (test cu.warp.floating, fmodf). */
}

#else

static void
find_features(const struct features *f)
{
    (void)f;
}

#endif

void
hed_ptx_features(char *text, size_t size)
{
    text[0] = 0;
    find_features(&(struct features){.text = text, .size = size});
}
