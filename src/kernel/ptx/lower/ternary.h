/* Instructions of AVX-512 that LLVM gets wrong. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hed_ptx_options;

/* Is there one in the machine code, which may be a whole object file, that may be wrong? */
bool hed_lower_may_be_wrong_ternary(const unsigned char *code, size_t size);

/* The features without those of AVX-512: in `out`, whose size is enough for the features that
 * there are. False: it has none of them. */
bool hed_lower_without_avx512(const char *features, char *out, size_t size);
