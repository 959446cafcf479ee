/* What makes code wait for other threads, instruction by instruction. wait.c asks this of a
 * function's text, spin.c of a flow.
 */
#pragma once

#include <stdbool.h>

#include "kernel/ptx/ptx.h"

struct hed_ptx_unit;

/* Does the result depend on what other threads do at this moment? */
bool hed_wait_is_source(const struct hed_ptx_inst *i);
/* Is it a compare-and-swap whose result and whose expected value are registers? */
bool hed_wait_is_swap(const struct hed_ptx_inst *i);
/* Does it compare two registers for equality? */
bool hed_wait_compares(const struct hed_ptx_inst *i);
bool hed_wait_is_copy(const struct hed_ptx_inst *i);
/* May the access be to the thread's own memory? May other threads write there? */
bool hed_wait_is_own_memory(const struct hed_ptx_form *f);
bool hed_wait_others_write(const struct hed_ptx_form *f);
/* May a function that is called depend on other threads? All that can be reached count: finding out
 * which of them a call reaches is not worth the effort. */
bool hed_wait_calls(const struct hed_ptx_unit *u);
