/* Options of the calls that compile: cuModuleLoadDataEx, cuLibraryLoadData, cuLinkCreate.
 *
 * Options that tell a compiler how to optimise are checked and have no effect here: code is
 * compiled when a kernel first runs, always in the same way. The logs and the time are real. A
 * machine with a compiler of its own (remote/client) gets all options.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "gen/cuda_abi.h"

#define HED_JIT_CHOICES_MAX 32

/* How to open an image. */
struct hed_jit_how {
    struct hed_buf *log; /* takes the text of a JIT's log; NULL if the program wants none */
    bool now;            /* for a module: report errors in the image at once */
    unsigned count;
    struct hed_jit_choice { /* options that are numbers and inputs */
        CUjit_option option;
        unsigned value;
    } choices[HED_JIT_CHOICES_MAX];
};

struct hed_jit {
    char *info, *error;                          /* the program's buffers, or NULL */
    unsigned info_room, error_room;              /* bytes */
    void **info_size, **error_size, **wall_time; /* where answers go, or NULL */
    bool verbose;
    uint64_t start; /* ns */
    struct hed_buf log;
    struct hed_jit_how how; /* its log is set if the program has a buffer for it */
};

/* Reads the options: INVALID_VALUE for unknown ones, NOT_SUPPORTED for symbols of the host.
 * hed_jit_finish() must be called even after a failure. */
CUresult hed_jit_begin(struct hed_jit *j, unsigned count, const CUjit_option *options,
                       void **values);

/* Copies the log to the program's buffers: to the one for errors if the call failed, else to the
 * one for information. hed_jit_finish() does so for the last time and frees the log. */
void hed_jit_report(struct hed_jit *j, CUresult result);
void hed_jit_finish(struct hed_jit *j, CUresult result);
