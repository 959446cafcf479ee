/* See answer.h. What is computed becomes a host function of the driver, which keeps it in the order
 * of its stream and waits for it like for a kernel. At the end of the process, one line says what
 * was computed by whom.
 */
#include "fastlibs/answer.h"

#include <fenv.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/futex.h"
#include "base/log.h"
#include "fastlibs/blas.h"
#include "fastlibs/descriptors.h"
#include "fastlibs/real.h"
#include "fastlibs/scratch.h"

struct job {
    bool is_convolution;
    union {
        struct hed_product product;
        struct hed_convolution convolution;
    };
    const struct hed_blas *blas;
};

/* Relaxed: they are counted, and order nothing. */
static _Atomic uint64_t products, convolutions, left[HED_LEFT_COUNT];

static void
count_one(_Atomic uint64_t *what)
{
    (void)atomic_fetch_add_explicit(what, 1, memory_order_relaxed);
}

void
hed_answer_leave(enum hed_left why)
{
    count_one(&left[why]);
}

/* ---- operands -------------------------------------------------------------------------------- */

/* May the GPU read, or write, the allocation at an address? */
static bool
is_open(const struct hed_real_driver *d, CUdeviceptr at, bool writes)
{
    unsigned access = 0;

    return d->pointer_attribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at) == CUDA_SUCCESS &&
           (writes ? access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                   : access != CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
}

/* Does it lie in allocations that may be used so? What is freed later is freed in the order of the
 * stream, or after the stream was waited for. A large operand may lie in several mappings. */
static bool
is_inside(const struct hed_real_driver *d, const void *data, uint64_t bytes, bool writes)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)data;

    while (bytes > 0) {
        CUdeviceptr base = 0;
        size_t size = 0;
        uint64_t here;

        if (d->address_range(&base, &size, at) != CUDA_SUCCESS || at < base || at - base >= size ||
            !is_open(d, at, writes))
            return false;
        here = size - (at - base);
        if (bytes <= here)
            return true;
        bytes -= here;
        at += here;
    }
    return false;
}

static bool
is_matrix_inside(const struct hed_real_driver *d, const struct hed_product_matrix *x, int64_t rows,
                 int64_t columns, int64_t batches, bool writes)
{
    return is_inside(d, x->data, hed_product_extent(x, rows, columns, batches), writes);
}

static bool
is_product_inside(const struct hed_real_driver *d, const struct hed_product *p)
{
    return is_matrix_inside(d, &p->a, hed_product_rows(&p->a, p->m, p->k),
                            hed_product_columns(&p->a, p->m, p->k), p->batches, false) &&
           is_matrix_inside(d, &p->b, hed_product_rows(&p->b, p->k, p->n),
                            hed_product_columns(&p->b, p->k, p->n), p->batches, false) &&
           is_matrix_inside(d, &p->d, p->m, p->n, p->batches, true) &&
           ((p->beta.re == 0 && p->beta.im == 0) ||
            is_matrix_inside(d, &p->c, p->m, p->n, p->batches, false)) &&
           (!p->bias.data || is_matrix_inside(d, &p->bias, p->m, 1, p->batches, false));
}

static bool
is_convolution_inside(const struct hed_real_driver *d, const struct hed_convolution *c)
{
    return is_inside(d, c->x.data, hed_convolution_extent(&c->x, c->type),
                     c->kind == HED_CONVOLUTION_TO_DATA) &&
           is_inside(d, c->y.data, hed_convolution_extent(&c->y, c->type),
                     c->kind == HED_CONVOLUTION_FORWARD) &&
           is_inside(d, c->w.data, hed_convolution_extent(&c->w, c->type),
                     c->kind == HED_CONVOLUTION_TO_FILTER);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

#define ENDED (UINT32_C(1) << 31)

/* Jobs that run, and ENDED: the process ends, and no other job begins. */
static _Atomic uint32_t running;
static _Thread_local uint32_t runs_here; /* how many of them in this thread */

static void
end_job(void)
{
    runs_here = 0;
    /* Release: the job has left the BLAS when end_jobs() no longer counts it. */
    if (atomic_fetch_sub_explicit(&running, 1, memory_order_release) & ENDED)
        (void)hed_futex_wake_private(&running, INT_MAX);
}

static bool
begin_job(void)
{
    runs_here = 1;
    /* One order with end_jobs(), which counts this job, or is seen by it. */
    if (!(atomic_fetch_add(&running, 1) & ENDED))
        return true;
    end_job();
    return false;
}

/* OpenBLAS's destructor takes down what jobs use. A job of this thread does not end before exit()
 * does: the program has called it in a handler of a signal. */
static void
end_jobs(void)
{
    uint32_t now = atomic_fetch_or(&running, ENDED) | ENDED;

    while (now != (ENDED | runs_here)) {
        (void)hed_futex_wait_private(&running, now, -1);
        /* Acquire: see end_job(). */
        now = atomic_load_explicit(&running, memory_order_acquire);
    }
}

static void
compute_job(const struct job *j)
{
    fenv_t env;

    /* The thread may have the program's rounding, or take small numbers for 0. */
    fegetenv(&env);
    fesetenv(FE_DFL_ENV);
    if (j->is_convolution)
        hed_convolution_run(&j->convolution, j->blas);
    else
        hed_product_run(&j->product, j->blas);
    fesetenv(&env);
}

static void
run_job(void *arg)
{
    struct job *j = arg;

    if (begin_job()) {
        compute_job(j);
        end_job();
    }
    free(j);
}

static bool
put_job(const struct hed_real_driver *d, CUstream stream, const struct job *from)
{
    struct job *j = malloc(sizeof *j);

    if (!j)
        return false;
    *j = *from;
    if (d->host_function(stream, run_job, j) == CUDA_SUCCESS)
        return true;
    free(j);
    return false;
}

/* Why nothing can be put into a stream now; HED_LEFT_COUNT: it can. */
static enum hed_left
hinders_stream(const struct hed_real_driver *d, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult r = d->is_capturing(stream, &status);

    if (r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
        (r == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE))
        return HED_LEFT_CAPTURED;
    return r == CUDA_SUCCESS ? HED_LEFT_COUNT : HED_LEFT_REFUSED;
}

bool
hed_answer_product(CUstream stream, const struct hed_product *p)
{
    const struct hed_real_driver *d = hed_real_driver();
    const struct hed_blas *blas = d ? hed_blas_load() : NULL;

    enum hed_left hinder;

    if (!blas)
        return false;
    hinder = hinders_stream(d, stream);
    if (!hed_product_is_sound(p))
        hed_answer_leave(HED_LEFT_KIND);
    else if (hinder != HED_LEFT_COUNT)
        hed_answer_leave(hinder);
    else if (!is_product_inside(d, p))
        hed_answer_leave(HED_LEFT_MEMORY);
    else if (!hed_product_prepare() ||
             !put_job(d, stream, &(struct job){false, .product = *p, .blas = blas}))
        hed_answer_leave(HED_LEFT_REFUSED);
    else {
        count_one(&products);
        return true;
    }
    return false;
}

bool
hed_answer_convolution(CUstream stream, const struct hed_convolution *c)
{
    const struct hed_real_driver *d = hed_real_driver();
    const struct hed_blas *blas = d ? hed_blas_load() : NULL;

    enum hed_left hinder;

    if (!blas)
        return false;
    hinder = hinders_stream(d, stream);
    if (!hed_convolution_is_sound(c))
        hed_answer_leave(HED_LEFT_KIND);
    else if (hinder != HED_LEFT_COUNT)
        hed_answer_leave(hinder);
    else if (!is_convolution_inside(d, c))
        hed_answer_leave(HED_LEFT_MEMORY);
    else if (!hed_convolution_prepare(c) ||
             !put_job(d, stream, &(struct job){true, .convolution = *c, .blas = blas}))
        hed_answer_leave(HED_LEFT_REFUSED);
    else {
        count_one(&convolutions);
        return true;
    }
    return false;
}

/* ---- the log --------------------------------------------------------------------------------- */

static bool is_child; /* of a fork: it has libraries that it need not use */

/* A child counts what it does itself, and has none of the parent's threads. */
static void
forget_parent(void)
{
    is_child = true;
    atomic_fetch_and(&running, ENDED);
    hed_descriptors_forked();
    hed_scratch_forked();
    atomic_store(&products, 0);
    atomic_store(&convolutions, 0);
    for (unsigned i = 0; i < HED_LEFT_COUNT; i++)
        atomic_store(&left[i], 0);
}

__attribute__((constructor)) static void
prepare_library(void)
{
    (void)pthread_atfork(NULL, NULL, forget_parent);
    /* The first handler to be registered is the last one to run: those of the program may still
     * wait for results. All run before the libraries' destructors. */
    (void)atexit(end_jobs);
    /* This library has a log of its own. A text that cannot be read is libcuda's to complain about.
     */
    (void)hed_log_setup(secure_getenv("HEDDLE_LOG"), NULL);
}

__attribute__((destructor)) static void
say_counts(void)
{
    static const char *const texts[] = {
#define LEFT_TEXT(token, text) [HED_LEFT_##token] = text,
        HED_LEFT_MAP(LEFT_TEXT)
#undef LEFT_TEXT
    };
    const uint64_t computed = atomic_load(&products) + atomic_load(&convolutions);
    const struct hed_blas *blas = computed ? hed_blas_load() : NULL;
    uint64_t kernels = 0;
    struct hed_buf b;

    hed_buf_init(&b, 1024);
    for (unsigned i = 0; i < HED_LEFT_COUNT; i++) {
        const uint64_t n = atomic_load(&left[i]);

        if (n)
            hed_buf_addf(&b, "%s%" PRIu64 " %s", kernels ? ", " : ": ", n, texts[i]);
        kernels += n;
    }
    /* Nothing is seen of a program that asks for cuBLAS's functions by their address. */
    if (computed + kernels || (!is_child && hed_real_is_loaded()))
        hed_log_write(HED_LOG_FAST_LIBS, HED_LEVEL_INFO,
                      "%s computed %" PRIu64 " matrix products and %" PRIu64
                      " convolutions, %" PRIu64 " were left to kernels%s",
                      blas ? blas->name : "OpenBLAS", atomic_load(&products),
                      atomic_load(&convolutions), kernels, hed_buf_cstr(&b));
    hed_buf_fini(&b);
}
