/* What this processor can do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a processor tells: words of CPUID, or of the system. */
enum hed_ptx_word {
    HED_PTX_CPUID_1_C,
    HED_PTX_CPUID_7_B,
    HED_PTX_CPUID_EXTENDED_C, /* leaf 0x80000001 */
    HED_PTX_HWCAP,
    HED_PTX_WORDS
};

enum hed_ptx_needs { HED_PTX_NEEDS_NOTHING, HED_PTX_NEEDS_YMM, HED_PTX_NEEDS_ZMM };

struct hed_ptx_processor {
    uint32_t words[HED_PTX_WORDS];
    bool saves_ymm; /* the system saves the registers of AVX */
    bool saves_zmm; /* and those of AVX-512 */
};

/* The features that the processor reports and that the compiler may use, by LLVM's names
 * ("+lse,+fullfp16"). Not those that the processor's model is known to have: a virtual machine may
 * hide some. With HED_DEBUG, a test can say which (HED_TEST_FEATURES). */
void hed_ptx_features(char *text, size_t size);

/* The same for a processor that need not be this one. */
void hed_ptx_features_x86(const struct hed_ptx_processor *p, char *text, size_t size);
void hed_ptx_features_arm(const struct hed_ptx_processor *p, char *text, size_t size);
