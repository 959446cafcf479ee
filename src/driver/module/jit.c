/* JIT options. See jit.h. */
#include "driver/module/jit.h"

#include <string.h>

#include "base/clock.h"

#define LOG_MAX ((size_t)1 << 20) /* bytes in a log before it is cut to the program's buffer */

/* Values are stored in the pointers themselves, so that the array can also take answers. */
static unsigned
option_number(void *const *value)
{
    unsigned n;

    memcpy(&n, value, sizeof n);
    return n;
}

/* Is it a number that tells a compiler something? Some of the others are addresses. */
static bool
is_choice(CUjit_option option)
{
    switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_TARGET:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_LTO:
    case CU_JIT_FTZ:
    case CU_JIT_PREC_DIV:
    case CU_JIT_PREC_SQRT:
    case CU_JIT_FMA:
    case CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
    case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
    case CU_JIT_SPLIT_COMPILE:
        return true;
    default:
        return false;
    }
}

/* The last value of an option counts. There is room for every option. */
static void
choose_option(struct hed_jit_how *how, CUjit_option option, unsigned value)
{
    unsigned i = 0;

    while (i < how->count && how->choices[i].option != option)
        i++;
    if (i == HED_JIT_CHOICES_MAX)
        return;
    how->choices[i] = (struct hed_jit_choice){option, value};
    how->count += i == how->count;
}

static CUresult
take_jit_option(struct hed_jit *j, CUjit_option option, void **value)
{
    switch (option) {
    case CU_JIT_WALL_TIME:
        j->wall_time = value;
        break;
    case CU_JIT_INFO_LOG_BUFFER:
        j->info = *value;
        break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        j->info_room = option_number(value);
        j->info_size = value;
        break;
    case CU_JIT_ERROR_LOG_BUFFER:
        j->error = *value;
        break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        j->error_room = option_number(value);
        j->error_size = value;
        break;
    case CU_JIT_OPTIMIZATION_LEVEL: /* NVIDIA's driver accepts any number */
        break;
    case CU_JIT_FALLBACK_STRATEGY:
        return option_number(value) <= CU_PREFER_BINARY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_CACHE_MODE:
        return option_number(value) <= CU_JIT_CACHE_OPTION_CA ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_VALUE;
    case CU_JIT_LOG_VERBOSE:
        j->verbose = option_number(value) != 0;
        break;
    case CU_JIT_GLOBAL_SYMBOL_COUNT:
        /* Host addresses for undefined symbols are not supported here. */
        return option_number(value) == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    default:
        /* The enumeration has no gaps; the rest is about optimisation. */
        return (unsigned)option < CU_JIT_NUM_OPTIONS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult
hed_jit_begin(struct hed_jit *j, unsigned count, const CUjit_option *options, void **values)
{
    *j = (struct hed_jit){.start = hed_now_ns()};
    hed_buf_init(&j->log, LOG_MAX);
    if (count > 0 && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        const CUresult r = take_jit_option(j, options[i], &values[i]);

        if (r != CUDA_SUCCESS)
            return r;
        if (is_choice(options[i]))
            choose_option(&j->how, options[i], option_number(&values[i]));
    }
    if (j->info || j->error)
        j->how.log = &j->log;
    return CUDA_SUCCESS;
}

/* "(OUT) the amount of log buffer filled with messages" (cuda.h,
 * CUjit_option). */
static void
put_log(const char *text, char *to, unsigned room, void **size)
{
    unsigned n = 0;

    if (to && room > 0) {
        n = (unsigned)strnlen(text, room - 1);
        memcpy(to, text, n);
        to[n] = '\0';
    }
    if (size)
        memcpy(size, &n, sizeof n);
}

void
hed_jit_report(struct hed_jit *j, CUresult result)
{
    const char *text = hed_buf_cstr(&j->log);
    const bool failed = result != CUDA_SUCCESS;

    put_log(failed ? text : "", j->error, j->error_room, j->error_size);
    put_log(failed ? "" : text, j->info, j->info_room, j->info_size);
    if (j->wall_time) {
        const float ms = (float)(hed_now_ns() - j->start) / 1e6f;

        memcpy(j->wall_time, &ms, sizeof ms);
    }
}

void
hed_jit_finish(struct hed_jit *j, CUresult result)
{
    hed_jit_report(j, result);
    hed_buf_fini(&j->log);
}
