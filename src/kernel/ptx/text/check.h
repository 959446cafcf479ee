/* The type rules, for code generators. */
#pragma once

#include <stdbool.h>

#include "kernel/ptx/words.h"

/* May a register of type reg stand where an instruction wants type? If relaxed, a wider one may
 * too, as in ld, st and cvt.
 */
bool hed_ptx_fits(enum hed_ptx_type reg, enum hed_ptx_type type, bool relaxed);
