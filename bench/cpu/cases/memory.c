/* The cases of kernels/memory.cl. */
#include "../cases.h"

static void
prepare_triad(struct job *job, int n)
{
    job_output(job, FLOATS, (size_t)n);
    job_floats(job, (size_t)n, -1, 1);
    job_floats(job, (size_t)n, -1, 1);
    job_float(job, 3);
    job_int(job, n);
    job_shape(job, n, 1, 256, 1);
    job->bytes = 12.0 * n;
}

static void
prepare_triad_l2(struct job *job)
{
    prepare_triad(job, 48 << 10);
}

static void
prepare_triad_mem(struct job *job)
{
    prepare_triad(job, 4 << 20);
}

static void
prepare_saxpy_small(struct job *job)
{
    prepare_triad(job, 1024);
}

static void
triad(float *restrict a, const float *restrict b, const float *restrict c, float s, int n)
{
    for (int i = 0; i < n; i++)
        a[i] = __builtin_fmaf(s, c[i], b[i]);
}

static void
plain_triad(const struct job *job)
{
    triad(data_of(job, 0), data_of(job, 1), data_of(job, 2), job->arguments[3].f, int_of(job, 4));
}

static void
plain_saxpy(const struct job *job)
{
    triad(data_of(job, 0), data_of(job, 2), data_of(job, 1), job->arguments[3].f, int_of(job, 4));
}

static void
prepare_haxpy(struct job *job)
{
    const int n = 256 << 10;

    job_output(job, HALVES, (size_t)n);
    for (int k = 0; k < 2; k++) {
        _Float16 *p = job_buffer(job, HALVES, (size_t)n);

        for (int i = 0; i < n; i++)
            p[i] = (_Float16)random_float(-1, 1);
    }
    job_float(job, 2.5f);
    job_int(job, n);
    job_shape(job, n, 1, 256, 1);
}

static void
haxpy(_Float16 *restrict z, const _Float16 *restrict x, const _Float16 *restrict y, _Float16 a,
      int n)
{
    for (int i = 0; i < n; i++)
        z[i] = a * x[i] + y[i];
}

static void
plain_haxpy(const struct job *job)
{
    haxpy(data_of(job, 0), data_of(job, 1), data_of(job, 2), (_Float16)job->arguments[3].f,
          int_of(job, 4));
}

static void
prepare_transpose(struct job *job)
{
    const int n = 1024;

    job_output(job, FLOATS, (size_t)n * n);
    job_floats(job, (size_t)n * n, -1, 1);
    job_int(job, n);
    job_shape(job, n, n / 4, 32, 8);
}

static void
transpose(float *restrict out, const float *restrict in, int n)
{
    for (int y0 = 0; y0 < n; y0 += 32)
        for (int x0 = 0; x0 < n; x0 += 32)
            for (int y = y0; y < y0 + 32; y++)
                for (int x = x0; x < x0 + 32; x++)
                    out[y * n + x] = in[x * n + y];
}

static void
plain_transpose(const struct job *job)
{
    transpose(data_of(job, 0), data_of(job, 1), int_of(job, 2));
}

static void
prepare_empty_1x1(struct job *job)
{
    job_shape(job, 1, 1, 1, 1);
}

static void
prepare_empty_1x256(struct job *job)
{
    job_shape(job, 256, 1, 256, 1);
}

static void
prepare_empty_1000x256(struct job *job)
{
    job_shape(job, 256000, 1, 256, 1);
}

static void
prepare_grow(struct job *job, int n)
{
    job_output(job, FLOATS, (size_t)n);
    job_int(job, n);
    job_shape(job, (n + 255) / 256 * 256, 1, 256, 1);
}

#define GROW(name, n)                           \
    static void prepare_##name(struct job *job) \
    {                                           \
        prepare_grow(job, n);                   \
    }

GROW(grow_1e3, 1000)
GROW(grow_1e4, 10000)
GROW(grow_1e5, 100000)
GROW(grow_1e6, 1000000)
GROW(grow_1e7, 10000000)
GROW(grow_1e8, 100000000)

static void
grow(float *restrict y, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = __builtin_fmaf(0.5f, y[i], 1.0f);
}

static void
plain_grow(const struct job *job)
{
    grow(data_of(job, 0), int_of(job, 1));
}

const struct bench_case memory_cases[] = {
    {"triad_l2", "memory", "triad", prepare_triad_l2, plain_triad, 1e-6},
    {"triad_mem", "memory", "triad", prepare_triad_mem, plain_triad, 1e-6},
    {"haxpy", "memory", "haxpy", prepare_haxpy, plain_haxpy, 2e-3},
    {"transpose", "memory", "transpose", prepare_transpose, plain_transpose, 0},
    {"saxpy_small", "memory", "saxpy", prepare_saxpy_small, plain_saxpy, 1e-6},
    {"empty_1x1", "memory", "empty", prepare_empty_1x1, NULL, 0},
    {"empty_1x256", "memory", "empty", prepare_empty_1x256, NULL, 0},
    {"empty_1000x256", "memory", "empty", prepare_empty_1000x256, NULL, 0},
    {"grow_1e3", "memory", "grow", prepare_grow_1e3, plain_grow, 1e-6},
    {"grow_1e4", "memory", "grow", prepare_grow_1e4, plain_grow, 1e-6},
    {"grow_1e5", "memory", "grow", prepare_grow_1e5, plain_grow, 1e-6},
    {"grow_1e6", "memory", "grow", prepare_grow_1e6, plain_grow, 1e-6},
    {"grow_1e7", "memory", "grow", prepare_grow_1e7, plain_grow, 1e-6},
    {"grow_1e8", "memory", "grow", prepare_grow_1e8, plain_grow, 1e-6},
    {0},
};
