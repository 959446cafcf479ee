/* Code, as other files of the worker need it: functions by the client's names, and variables.
 *
 * Only the thread that holds the current ticket adds, finds or forgets them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gen/cuda_abi.h"

struct hed_worker;
struct hed_worker_code;

#define HED_PARAMS_UNKNOWN UINT32_MAX /* the backend does not tell (null) */

struct hed_worker_function {
    uint64_t name; /* 0 if the entry is free */
    CUfunction real;
    uint32_t param_bytes;
    uint64_t context;    /* the client's name of the context that the function belongs to */
    const void *library; /* the library that the function belongs to */
};

/* Returns NULL if there is no function of that name. */
struct hed_worker_function *hed_worker_function(struct hed_worker_code *c, uint64_t name);

/* HED_EFORMAT if the name is taken or is not a function's. */
int hed_worker_function_add(struct hed_worker *w, uint64_t name, CUfunction real,
                            uint32_t param_bytes);

/* Forgets the functions of a context (by the client's name; 0 for none) and of a library (NULL for
 * none). */
void hed_worker_functions_forget(struct hed_worker *w, uint64_t context, const void *library);

/* Is all of the range in a variable whose address the client was told and that still exists? */
bool hed_worker_variable_covers(struct hed_worker *w, uint64_t at, uint64_t size);
