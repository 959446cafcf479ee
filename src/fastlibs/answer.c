/* See answer.h. What is computed becomes a host function of the driver, which keeps it in the order
 * of its stream and waits for it like for a kernel. At the end of the process, one line says what
 * was computed by whom.
 */
#include "fastlibs/answer.h"

#include <fenv.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/log.h"
#include "fastlibs/blas.h"
#include "fastlibs/real.h"

enum job_kind { JOB_PRODUCT, JOB_CONVOLUTION, JOB_NORMALISATION, JOB_KINDS };

static const char *const job_names[JOB_KINDS] = {
    [JOB_PRODUCT] = "matrix products",
    [JOB_CONVOLUTION] = "convolutions",
    [JOB_NORMALISATION] = "normalisations",
};

struct job {
    enum job_kind kind;
    union {
        struct hed_product product;
        struct hed_convolution convolution;
        struct hed_normalisation normalisation;
    };
    const struct hed_blas *blas;
};

/* Relaxed: they are counted, and order nothing. */
static _Atomic uint64_t computed[JOB_KINDS], left[HED_LEFT_COUNT];

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
    return is_inside(d, c->x.data, hed_tensor_extent(&c->x, c->type),
                     c->kind == HED_CONVOLUTION_TO_DATA) &&
           is_inside(d, c->y.data, hed_tensor_extent(&c->y, c->type),
                     c->kind == HED_CONVOLUTION_FORWARD) &&
           is_inside(d, c->w.data, hed_tensor_extent(&c->w, c->type),
                     c->kind == HED_CONVOLUTION_TO_FILTER);
}

static bool
are_numbers_inside(const struct hed_real_driver *d, const struct hed_normalisation *n)
{
    const uint64_t bytes = (uint64_t)n->x.size[1] * sizeof(float);

    for (unsigned i = 0; i < HED_NORMALISATION_NUMBERS; i++) {
        const enum hed_normalisation_use use = hed_normalisation_uses(n->kind, i);

        if (use != HED_NUMBERS_UNUSED && n->numbers[i] &&
            !is_inside(d, n->numbers[i], bytes, use != HED_NUMBERS_READ))
            return false;
    }
    return true;
}

static bool
is_normalisation_inside(const struct hed_real_driver *d, const struct hed_normalisation *n)
{
    return is_inside(d, n->x.data, hed_tensor_extent(&n->x, n->type), false) &&
           is_inside(d, n->y.data, hed_tensor_extent(&n->y, n->type), true) &&
           (n->kind != HED_NORMALISATION_GRADIENTS ||
            is_inside(d, n->dy.data, hed_tensor_extent(&n->dy, n->type), false)) &&
           are_numbers_inside(d, n);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool
is_sound(const struct job *j)
{
    switch (j->kind) {
    case JOB_PRODUCT:
        return hed_product_is_sound(&j->product);
    case JOB_CONVOLUTION:
        return hed_convolution_is_sound(&j->convolution);
    case JOB_NORMALISATION:
        return hed_normalisation_is_sound(&j->normalisation);
    default:
        return false;
    }
}

static bool
are_operands_inside(const struct hed_real_driver *d, const struct job *j)
{
    switch (j->kind) {
    case JOB_PRODUCT:
        return is_product_inside(d, &j->product);
    case JOB_CONVOLUTION:
        return is_convolution_inside(d, &j->convolution);
    case JOB_NORMALISATION:
        return is_normalisation_inside(d, &j->normalisation);
    default:
        return false;
    }
}

static bool
prepare_job(const struct job *j)
{
    switch (j->kind) {
    case JOB_PRODUCT:
        return hed_product_prepare();
    case JOB_CONVOLUTION:
        return hed_convolution_prepare(&j->convolution);
    case JOB_NORMALISATION:
        return true;
    default:
        return false;
    }
}

static void
compute(const struct job *j)
{
    switch (j->kind) {
    case JOB_PRODUCT:
        hed_product_run(&j->product, j->blas);
        break;
    case JOB_CONVOLUTION:
        hed_convolution_run(&j->convolution, j->blas);
        break;
    case JOB_NORMALISATION:
        hed_normalisation_run(&j->normalisation);
        break;
    default:
        break;
    }
}

static void
run_job(void *arg)
{
    struct job *j = arg;
    fenv_t env;

    /* The thread may have the program's rounding, or take small numbers for 0. */
    fegetenv(&env);
    fesetenv(FE_DFL_ENV);
    compute(j);
    fesetenv(&env);
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

/* Takes a job whose `blas` is not set yet. */
static bool
answer(CUstream stream, struct job *j)
{
    const struct hed_real_driver *d = hed_real_driver();
    enum hed_left hinder;

    j->blas = d ? hed_blas_load() : NULL;
    if (!j->blas)
        return false;
    hinder = hinders_stream(d, stream);
    if (!is_sound(j))
        hed_answer_leave(HED_LEFT_KIND);
    else if (hinder != HED_LEFT_COUNT)
        hed_answer_leave(hinder);
    else if (!are_operands_inside(d, j))
        hed_answer_leave(HED_LEFT_MEMORY);
    else if (!prepare_job(j) || !put_job(d, stream, j))
        hed_answer_leave(HED_LEFT_REFUSED);
    else {
        count_one(&computed[j->kind]);
        return true;
    }
    return false;
}

bool
hed_answer_product(CUstream stream, const struct hed_product *of)
{
    return answer(stream, &(struct job){.kind = JOB_PRODUCT, .product = *of});
}

bool
hed_answer_convolution(CUstream stream, const struct hed_convolution *of)
{
    return answer(stream, &(struct job){.kind = JOB_CONVOLUTION, .convolution = *of});
}

bool
hed_answer_normalisation(CUstream stream, const struct hed_normalisation *of)
{
    return answer(stream, &(struct job){.kind = JOB_NORMALISATION, .normalisation = *of});
}

/* ---- the log --------------------------------------------------------------------------------- */

static bool is_child; /* of a fork: it has libraries that it need not use */

/* A child counts what it does itself. */
static void
forget_counts(void)
{
    is_child = true;
    for (unsigned i = 0; i < JOB_KINDS; i++)
        atomic_store(&computed[i], 0);
    for (unsigned i = 0; i < HED_LEFT_COUNT; i++)
        atomic_store(&left[i], 0);
}

__attribute__((constructor)) static void
open_log(void)
{
    (void)pthread_atfork(NULL, NULL, forget_counts);
    /* This library has a log of its own. A text that cannot be read is libcuda's to complain about.
     */
    (void)hed_log_setup(secure_getenv("HEDDLE_LOG"), NULL);
}

/* "4 matrix products, 0 convolutions, 0 normalisations"; returns how many there are. */
static uint64_t
add_counts(struct hed_buf *b, _Atomic uint64_t *counts, const char *const *names, unsigned n,
           bool even_none)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < n; i++) {
        const uint64_t count = atomic_load(&counts[i]);

        if (count || even_none)
            hed_buf_addf(b, "%s%" PRIu64 " %s", b->size ? ", " : "", count, names[i]);
        all += count;
    }
    return all;
}

__attribute__((destructor)) static void
say_counts(void)
{
    static const char *const reasons[] = {
#define LEFT_TEXT(token, text) [HED_LEFT_##token] = text,
        HED_LEFT_MAP(LEFT_TEXT)
#undef LEFT_TEXT
    };
    struct hed_buf done, why;
    uint64_t by_us, by_kernels;
    const struct hed_blas *blas;

    hed_buf_init(&done, 256);
    hed_buf_init(&why, 1024);
    by_us = add_counts(&done, computed, job_names, JOB_KINDS, true);
    by_kernels = add_counts(&why, left, reasons, HED_LEFT_COUNT, false);
    blas = by_us ? hed_blas_load() : NULL;
    /* Nothing is seen of a program that asks for cuBLAS's functions by their address. */
    if (by_us + by_kernels || (!is_child && hed_real_is_loaded()))
        hed_log_write(HED_LOG_FAST_LIBS, HED_LEVEL_INFO,
                      "computed %s with %s; %" PRIu64 " were left to kernels%s%s",
                      hed_buf_cstr(&done), blas ? blas->name : "OpenBLAS", by_kernels,
                      by_kernels ? ": " : "", by_kernels ? hed_buf_cstr(&why) : "");
    hed_buf_fini(&done);
    hed_buf_fini(&why);
}
