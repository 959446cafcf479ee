/* What this processor can do. See features.h. */
#include "kernel/ptx/run/features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

struct feature {
    const char *name;         /* LLVM's */
    enum hed_ptx_word word;   /* where the processor tells */
    uint32_t bits;            /* all of them are set */
    enum hed_ptx_needs needs; /* of the system */
};

#define AVX512 (1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31)

static const struct feature x86_features[] = {
    {"sse3", HED_PTX_CPUID_1_C, 1u << 0, HED_PTX_NEEDS_NOTHING},
    {"ssse3", HED_PTX_CPUID_1_C, 1u << 9, HED_PTX_NEEDS_NOTHING},
    {"sse4.1", HED_PTX_CPUID_1_C, 1u << 19, HED_PTX_NEEDS_NOTHING},
    {"sse4.2", HED_PTX_CPUID_1_C, 1u << 20, HED_PTX_NEEDS_NOTHING},
    {"popcnt", HED_PTX_CPUID_1_C, 1u << 23, HED_PTX_NEEDS_NOTHING},
    {"cx16", HED_PTX_CPUID_1_C, 1u << 13, HED_PTX_NEEDS_NOTHING},
    {"avx", HED_PTX_CPUID_1_C, 1u << 28, HED_PTX_NEEDS_YMM},
    {"f16c", HED_PTX_CPUID_1_C, 1u << 28 | 1u << 29, HED_PTX_NEEDS_YMM},
    {"fma", HED_PTX_CPUID_1_C, 1u << 28 | 1u << 12, HED_PTX_NEEDS_YMM},
    {"avx2", HED_PTX_CPUID_7_B, 1u << 5, HED_PTX_NEEDS_YMM},
    {"bmi", HED_PTX_CPUID_7_B, 1u << 3, HED_PTX_NEEDS_NOTHING},
    {"bmi2", HED_PTX_CPUID_7_B, 1u << 8, HED_PTX_NEEDS_NOTHING},
    {"lzcnt", HED_PTX_CPUID_EXTENDED_C, 1u << 5, HED_PTX_NEEDS_NOTHING},
    /* LLVM gets one instruction of AVX-512 wrong now and then; lower/ternary.c finds it. The first
     * five are there together or not at all, as in every processor but the first two kinds. */
    {"avx512f", HED_PTX_CPUID_7_B, AVX512, HED_PTX_NEEDS_ZMM},
    {"avx512dq", HED_PTX_CPUID_7_B, AVX512, HED_PTX_NEEDS_ZMM},
    {"avx512cd", HED_PTX_CPUID_7_B, AVX512, HED_PTX_NEEDS_ZMM},
    {"avx512bw", HED_PTX_CPUID_7_B, AVX512, HED_PTX_NEEDS_ZMM},
    {"avx512vl", HED_PTX_CPUID_7_B, AVX512, HED_PTX_NEEDS_ZMM},
};

static const struct feature arm_features[] = {
    {"lse", HED_PTX_HWCAP, 1u << 8, HED_PTX_NEEDS_NOTHING},
    {"crc", HED_PTX_HWCAP, 1u << 7, HED_PTX_NEEDS_NOTHING},
    {"fullfp16", HED_PTX_HWCAP, 1u << 9 | 1u << 10, HED_PTX_NEEDS_NOTHING},
    {"rdm", HED_PTX_HWCAP, 1u << 12, HED_PTX_NEEDS_NOTHING},
    {"rcpc", HED_PTX_HWCAP, 1u << 15, HED_PTX_NEEDS_NOTHING},
    {"dotprod", HED_PTX_HWCAP, 1u << 20, HED_PTX_NEEDS_NOTHING},
    {"lse2", HED_PTX_HWCAP, 1u << 25, HED_PTX_NEEDS_NOTHING},
};

static void
name_features(const struct feature *features, size_t count, const struct hed_ptx_processor *p,
              char *text, size_t size)
{
    size_t n = 0;

    text[0] = 0;
    for (const struct feature *f = features; f < features + count; f++) {
        if ((p->words[f->word] & f->bits) != f->bits ||
            (f->needs == HED_PTX_NEEDS_YMM && !p->saves_ymm) ||
            (f->needs == HED_PTX_NEEDS_ZMM && !(p->saves_ymm && p->saves_zmm)))
            continue;

        const int added = snprintf(text + n, size - n, "%s+%s", n ? "," : "", f->name);

        if (added < 0 || (size_t)added >= size - n) {
            text[n] = 0; /* half of a name is none */
            return;
        }
        n += (size_t)added;
    }
}

void
hed_ptx_features_x86(const struct hed_ptx_processor *p, char *text, size_t size)
{
    name_features(x86_features, sizeof x86_features / sizeof *x86_features, p, text, size);
}

void
hed_ptx_features_arm(const struct hed_ptx_processor *p, char *text, size_t size)
{
    name_features(arm_features, sizeof arm_features / sizeof *arm_features, p, text, size);
}

/* ---- this processor -------------------------------------------------------------------------- */

#if defined(__aarch64__)

static void
find_features(char *text, size_t size)
{
    struct hed_ptx_processor p = {0};

    p.words[HED_PTX_HWCAP] = (uint32_t)getauxval(AT_HWCAP);
    hed_ptx_features_arm(&p, text, size);
}

#elif defined(__x86_64__)

static void
find_features(char *text, size_t size)
{
    struct hed_ptx_processor p = {0};
    unsigned a, b, c, d;

    if (__get_cpuid(1, &a, &b, &c, &d))
        p.words[HED_PTX_CPUID_1_C] = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        p.words[HED_PTX_CPUID_7_B] = b;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d))
        p.words[HED_PTX_CPUID_EXTENDED_C] = c;
    /* These ask the system too. */
    p.saves_ymm = __builtin_cpu_supports("avx");
    p.saves_zmm = __builtin_cpu_supports("avx512f");
    hed_ptx_features_x86(&p, text, size);
}

#else

static void
find_features(char *text, size_t size)
{
    (void)size;
    text[0] = 0;
}

#endif

void
hed_ptx_features(char *text, size_t size)
{
#ifdef HED_DEBUG
    const char *given = secure_getenv("HED_TEST_FEATURES");

    if (given) {
        snprintf(text, size, "%s", given);
        return;
    }
#endif
    find_features(text, size);
}
