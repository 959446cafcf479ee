/* Options of the calls that compile: cuModuleLoadDataEx, cuLibraryLoadData, cuLinkCreate.
 *
 * What tells a compiler how to optimise is checked and has no effect here: code is compiled when a
 * kernel first runs, in one way. The logs and the time are real. A machine that has a
 * compiler of its own (backends/remote) is told all of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "gen/cuda_abi.h"

#define HED_JIT_CHOICES_MAX 32

/* How an image is to be opened. */
struct hed_jit_how {
    struct hed_buf *log; /* what a JIT's log would say; NULL: nobody reads it */
    bool now;            /* a module: what is wrong with it is told at once */
    unsigned count;
    struct hed_jit_choice { /* options that are numbers and go in */
        CUjit_option option;
        unsigned value;
    } choices[HED_JIT_CHOICES_MAX];
};

struct hed_jit {
    char *info, *error;                          /* the program's buffers, or NULL */
    unsigned info_room, error_room;              /* bytes */
    void **info_size, **error_size, **wall_time; /* where answers go; NULL: nobody asks */
    bool verbose;
    uint64_t start; /* ns */
    struct hed_buf log;
    struct hed_jit_how how; /* log: if the program has a buffer for it */
};

/* Reads the options: INVALID_VALUE for unknown ones, NOT_SUPPORTED for symbols of the host. Finish
 * in any case. */
CUresult hed_jit_begin(struct hed_jit *j, unsigned count, const CUjit_option *options,
                       void **values);

/* The log goes to the program's buffers: to the one for errors if the call failed, else to the one
 * for information. Finishing is the last time. */
void hed_jit_report(struct hed_jit *j, CUresult result);
void hed_jit_finish(struct hed_jit *j, CUresult result);
