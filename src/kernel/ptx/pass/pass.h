/* Analyses of the model, for the code generators. They read a function's body, and know neither
 * LLVM nor the shape of the code that will be made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hed_ptx_func;
struct hed_ptx_unit;

/* wait.c: sets waits[id] for each label that a loop which may wait for other threads branches back
 * to, and *any if there is one. `waits` has f->nlabels elements, all false. u holds the functions
 * that f can reach. HED_ENOMEM. */
int hed_ptx_find_waits(const struct hed_ptx_unit *u, const struct hed_ptx_func *f, bool *waits,
                       bool *any);

/* uses.c: how a body uses a register. ONCE: the first instruction that mentions the register writes
 * it, unconditionally, and no other instruction writes it. */
enum hed_ptx_use { HED_PTX_USE_NONE, HED_PTX_USE_ONCE, HED_PTX_USE_MANY };

/* Returns enum hed_ptx_use by register id, to be freed by the caller; NULL if there is no
 * memory. */
uint8_t *hed_ptx_find_uses(const struct hed_ptx_func *f);
