/* The CPU GPU's own data of a hed_code. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backends/cpu/cache.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/lock.h"
#include "driver/near/near.h"
#include "ptx/interp/interp.h"
#include "ptx/ptx.h"
#include "ptx/run/load.h"

#define HED_CPU_DESCRIPTION_MAX ((size_t)1 << 30) /* bytes of descriptions */

enum hed_cpu_kernel_state { HED_CPU_NONE, HED_CPU_BUSY, HED_CPU_READY, HED_CPU_FAILED };

struct hed_cpu_kernel {
    const struct hed_ptx_func *func;
    _Atomic int state; /* enum hed_cpu_kernel_state; changed under the code's lock */
    CUresult result;   /* valid if READY or FAILED, like the next members */
    struct hed_ptx_loaded loaded;
    struct hed_interp *program; /* of the baseline tier; NULL if the kernel is compiled */
    struct hed_why why;
};

struct hed_cpu_code {
    struct hed_code pub;    /* first */
    struct hed_arena arena; /* holds what pub points to */
    struct hed_ptx_module module;
    struct hed_cache_key text;       /* the hash of the PTX */
    const struct hed_ptx_var **vars; /* by index in pub.vars */
    struct hed_cpu_kernel *states;   /* by index in pub.kernels */
    struct hed_lock lock;
    pthread_cond_t done; /* a kernel is not BUSY any more */
};

/* describe.c: reads PTX and describes what is in it. */
int hed_code_read_ptx(struct hed_cpu_code *code, const struct hed_code_source *source,
                      struct hed_buf *log, struct hed_why *why);
