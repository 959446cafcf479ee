/* The cases of kernels/dense.cl. */
#include "../cases.h"

static void
prepare_matrices(struct job *job)
{
    const int n = 256;

    job_output(job, FLOATS, (size_t)n * n);
    job_floats(job, (size_t)n * n, -1, 1);
    job_floats(job, (size_t)n * n, -1, 1);
    job_int(job, n);
    job->flops = 2.0 * n * n * n;
}

static void
prepare_sgemm16x16(struct job *job)
{
    prepare_matrices(job);
    job_shape(job, 256, 256, 16, 16);
}

static void
prepare_sgemm32x8(struct job *job)
{
    prepare_matrices(job);
    job_shape(job, 256, 256, 32, 8);
}

static void
prepare_sgemm32x32(struct job *job)
{
    prepare_matrices(job);
    job_shape(job, 256, 256, 32, 32);
}

static void
prepare_sgemm_regs(struct job *job)
{
    prepare_matrices(job);
    job_shape(job, 64, 64, 16, 16);
}

/* Rows of b are added to rows of c: what compilers turn into vectors. */
static void
sgemm(float *restrict c, const float *restrict a, const float *restrict b, int n)
{
    for (int y = 0; y < n; y++) {
        for (int x = 0; x < n; x++)
            c[y * n + x] = 0;
        for (int k = 0; k < n; k++)
            for (int x = 0; x < n; x++)
                c[y * n + x] = __builtin_fmaf(a[y * n + k], b[k * n + x], c[y * n + x]);
    }
}

static void
plain_sgemm(const struct job *job)
{
    sgemm(data_of(job, 0), data_of(job, 1), data_of(job, 2), int_of(job, 3));
}

static void
prepare_conv(struct job *job)
{
    const int channels = 8, side = 64, row = side + 2;

    job_output(job, FLOATS, (size_t)channels * side * side);
    job_floats(job, (size_t)channels * row * row, -1, 1);
    job_floats(job, (size_t)channels * channels * 9, -1, 1);
    job_int(job, channels);
    job_int(job, side);
    job_shape(job, side, side, 32, 8);
    job->grid[2] = (unsigned)channels;
}

static void
conv(float *restrict out, const float *restrict in, const float *restrict weights, int channels,
     int side)
{
    const int row = side + 2;

    for (int k = 0; k < channels; k++) {
        for (int y = 0; y < side; y++) {
            float *restrict line = out + (k * side + y) * side;

            for (int x = 0; x < side; x++)
                line[x] = 0;
            for (int i = 0; i < channels * 9; i++) {
                const float w = weights[k * channels * 9 + i];
                const float *restrict from = in + (i / 9 * row + y + i % 9 / 3) * row + i % 3;

                for (int x = 0; x < side; x++)
                    line[x] = __builtin_fmaf(w, from[x], line[x]);
            }
            for (int x = 0; x < side; x++)
                line[x] = line[x] > 0 ? line[x] : 0;
        }
    }
}

static void
plain_conv(const struct job *job)
{
    conv(data_of(job, 0), data_of(job, 1), data_of(job, 2), int_of(job, 3), int_of(job, 4));
}

const struct bench_case dense_cases[] = {
    {"sgemm_naive", "dense", "sgemm_naive", prepare_sgemm16x16, plain_sgemm, 1e-5},
    {"sgemm_naive32x8", "dense", "sgemm_naive", prepare_sgemm32x8, plain_sgemm, 1e-5},
    {"sgemm16", "dense", "sgemm16", prepare_sgemm16x16, plain_sgemm, 1e-5},
    {"sgemm32", "dense", "sgemm32", prepare_sgemm32x32, plain_sgemm, 1e-5},
    {"sgemm_regs", "dense", "sgemm_regs", prepare_sgemm_regs, plain_sgemm, 1e-5},
    {"conv", "dense", "conv", prepare_conv, plain_conv, 1e-5},
    {0},
};
