/* Code as other files of the worker need it: functions by the client's names, variables.
 *
 * They are added, found and forgotten by whoever has the turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gen/cuda_abi.h"

struct hed_worker;
struct hed_worker_code;

#define HED_PARAMS_UNKNOWN UINT32_MAX /* the backend does not say: null */

struct hed_worker_function {
    uint64_t name; /* 0: free */
    CUfunction real;
    uint32_t param_bytes;
    uint64_t context;    /* by the client's name: the function goes with it */
    const void *library; /* and with this */
};

/* NULL: there is none of that name. */
struct hed_worker_function *hed_worker_function(struct hed_worker_code *c, uint64_t name);

/* HED_EFORMAT: the name is taken, or none. */
int hed_worker_function_add(struct hed_worker *w, uint64_t name, CUfunction real,
                            uint32_t param_bytes);

/* Those of a context, by the client's name, or of a library (0, NULL: of none) are there no more.
 * */
void hed_worker_functions_forget(struct hed_worker *w, uint64_t context, const void *library);

/* Is all of it in a variable that the client has been told of, and that is still there? */
bool hed_worker_variable_covers(struct hed_worker *w, uint64_t at, uint64_t size);
