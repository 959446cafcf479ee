/* Functions that are compiled for several kinds of processors, of which the program takes the best
 * that its own can run when it is loaded.
 *
 * Releases are built for every x86-64, so vectors have 16 bytes there and each fused multiply-add
 * is a call of libm. AArch64 has both in its base. A clone computes the same: it differs in width
 * only, and files with such functions are compiled with -ffp-contract=off.
 */
#pragma once

#include "base/sanitize.h"

/* Sanitizers do not bear functions that are chosen while the program is being loaded, and clang has
 * other names for the kinds. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && \
    !HED_SANITIZED && !defined(HED_NO_CLONES)
#define HED_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define HED_CLONES
#endif
