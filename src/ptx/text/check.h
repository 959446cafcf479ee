/* The type rules, for code generators that want to ask again. */
#pragma once

#include <stdbool.h>

#include "ptx/words.h"

/* May a register of type reg stand where an instruction wants type? relaxed: a wider one may, too,
 * as in ld, st and cvt.
 */
bool hed_ptx_fits(enum hed_ptx_type reg, enum hed_ptx_type type, bool relaxed);
