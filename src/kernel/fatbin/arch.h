/* Architectures: sm_90, sm_90a, compute_100f, lto_75. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 10 * major + minor of the compute capability, and what the code is tied to: 'a' to exactly that
 * architecture, 'f' to its family, 0 to nothing but the number.
 */
struct hed_arch {
    uint32_t number;
    char suffix;
};

#define HED_ARCH_TEXT 24

/* "compute_90a" for the prefix "compute_". Returns out, which has room for HED_ARCH_TEXT bytes. */
const char *hed_arch_text(struct hed_arch arch, const char *prefix, char *out);

/* Reads "sm_90a", "compute_100f", "lto_75" or "90". *prefix (may be NULL) is one of "sm_",
 * "compute_", "lto_" and "". HED_EINVAL for anything else; the outputs are then unchanged.
 */
int hed_arch_parse(const char *s, struct hed_arch *out, const char **prefix);

/* Does machine code for `arch` run on a device of that compute capability (10 * major + minor)?
 *
 * "A cubin object generated for compute capability X.y will only execute on devices of compute
 * capability X.z where z>=y." (CUDA C++ Programming Guide, Binary Compatibility.) With 'a' only on
 * X.y itself; with 'f' as without a suffix, since its family is the later minors of the same major.
 */
bool hed_arch_runs(struct hed_arch arch, uint32_t device);

/* Can PTX for `arch` be compiled for that device? The rules are those of machine code, but PTX
 * without a suffix can be compiled for every later device, whatever its major.
 */
bool hed_arch_compiles(struct hed_arch arch, uint32_t device);
