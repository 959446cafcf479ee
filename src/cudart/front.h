/* What the generated fronts are made of: each exported function is one of these macros. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "cudart/context.h"
#include "cudart/driver.h"
#include "cudart/error.h"
#include "cudart/thread.h"

#define HED_EXPORT __attribute__((visibility("default")))

extern const int hed_rt_version; /* of the edition, as cudaRuntimeGetVersion() tells it */

#ifdef HED_RT_OLD_ERRORS
#define HED_RT_RESULT(r) hed_rt_old_error(r)
#else
#define HED_RT_RESULT(r) (r)
#endif

/* A thread takes a context with its first call that is not about devices, and looks whether it is
 * still there after a reset of any device. */
#define HED_RT_ARRIVE()                                                                   \
    do {                                                                                  \
        if (__builtin_expect(hed_rt_thread.arrived !=                                     \
                                 atomic_load_explicit(&hed_rt_age, memory_order_relaxed), \
                             0)) {                                                        \
            const cudaError_t arrival = hed_rt_arrive();                                  \
                                                                                          \
            if (arrival != cudaSuccess)                                                   \
                return HED_RT_RESULT(hed_rt_failed(arrival));                             \
        }                                                                                 \
    } while (0)

/* Makes the call, and again if all that it lacked was a context. */
#define HED_RT_CALL(expr)                               \
    for (int tries = 1;; tries++) {                     \
        cudaError_t r = (cudaError_t)(expr);            \
                                                        \
        if (__builtin_expect(r == cudaSuccess, 1))      \
            return r;                                   \
        if (tries == HED_RT_TRIES || !hed_rt_enter(&r)) \
            return HED_RT_RESULT(hed_rt_failed(r));     \
    }

/* A call whose result is no failure of the program's. */
#define HED_RT_PLAIN(expr) return HED_RT_RESULT((cudaError_t)(expr))

#define HED_RT_MISSING(name, why)                                         \
    do {                                                                  \
        static _Atomic bool said;                                         \
                                                                          \
        if (!atomic_exchange_explicit(&said, true, memory_order_relaxed)) \
            hed_rt_say_missing(name, why);                                \
        return HED_RT_RESULT(hed_rt_failed(cudaErrorNotSupported));       \
    } while (0)
