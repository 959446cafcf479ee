/* The cases of kernels/reduce.cl. */
#include <string.h>

#include "../cases.h"

enum { BLOCK = 256 };

/* Each block of 256 threads takes every (blocks * 256)th element; C sums the same ones. */
static void
prepare_dot(struct job *job)
{
    const int n = 1 << 20, blocks = 64;

    job_output(job, FLOATS, (size_t)blocks);
    job_floats(job, (size_t)n, -1, 1);
    job_floats(job, (size_t)n, -1, 1);
    job_int(job, n);
    job_shape(job, blocks * BLOCK, 1, BLOCK, 1);
}

/* Partial sums as a C programmer takes them: 256 accumulators per block, then their sum. */
static void
dot(float *restrict out, const float *restrict x, const float *restrict y, int n, int blocks)
{
    for (int b = 0; b < blocks; b++) {
        float part[BLOCK] = {0}, sum = 0;

        for (int i = b * BLOCK; i < n; i += blocks * BLOCK)
            for (int t = 0; t < BLOCK; t++)
                part[t] = __builtin_fmaf(x[i + t], y[i + t], part[t]);
        for (int t = 0; t < BLOCK; t++)
            sum += part[t];
        out[b] = sum;
    }
}

static void
plain_dot(const struct job *job)
{
    dot(data_of(job, 0), data_of(job, 1), data_of(job, 2), int_of(job, 3), (int)job->grid[0]);
}

static void
prepare_reduce(struct job *job)
{
    const int blocks = 1024;

    job_output(job, FLOATS, (size_t)blocks);
    job_floats(job, (size_t)blocks * BLOCK, 0, 1);
    job_shape(job, blocks * BLOCK, 1, BLOCK, 1);
}

/* Eight sums at a time, so that the compiler may use vectors without reordering. */
static void
reduce(float *restrict out, const float *restrict in, int blocks)
{
    for (int b = 0; b < blocks; b++) {
        float part[8] = {0}, sum = 0;

        for (int i = 0; i < BLOCK; i += 8)
            for (int t = 0; t < 8; t++)
                part[t] += in[b * BLOCK + i + t];
        for (int t = 0; t < 8; t++)
            sum += part[t];
        out[b] = sum;
    }
}

static void
plain_reduce(const struct job *job)
{
    reduce(data_of(job, 0), data_of(job, 1), (int)job->grid[0]);
}

static void
prepare_scan(struct job *job)
{
    const int blocks = 512;

    job_output(job, WORDS, (size_t)blocks * BLOCK);
    job_words(job, (size_t)blocks * BLOCK, 1000);
    job_shape(job, blocks * BLOCK, 1, BLOCK, 1);
}

static void
scan(uint32_t *restrict out, const uint32_t *restrict in, int blocks)
{
    for (int b = 0; b < blocks; b++) {
        uint32_t sum = 0;

        for (int i = 0; i < BLOCK; i++)
            out[b * BLOCK + i] = sum += in[b * BLOCK + i];
    }
}

static void
plain_scan(const struct job *job)
{
    scan(data_of(job, 0), data_of(job, 1), (int)job->grid[0]);
}

static void
prepare_histogram(struct job *job)
{
    const int n = 256 << 10;

    job_output(job, WORDS, 256);
    job_words(job, (size_t)n, 0);
    job_int(job, n);
    job_shape(job, 32 * BLOCK, 1, BLOCK, 1);
}

/* Four tables, so that two equal bytes in a row do not wait for each other. */
static void
histogram(uint32_t *restrict bins, const uint32_t *restrict in, int n)
{
    uint32_t part[4][256];

    memset(part, 0, sizeof part);
    for (int i = 0; i < n; i++) {
        part[0][in[i] & 255]++;
        part[1][in[i] >> 8 & 255]++;
        part[2][in[i] >> 16 & 255]++;
        part[3][in[i] >> 24]++;
    }
    for (int i = 0; i < 256; i++)
        bins[i] += part[0][i] + part[1][i] + part[2][i] + part[3][i];
}

static void
plain_histogram(const struct job *job)
{
    histogram(data_of(job, 0), data_of(job, 1), int_of(job, 2));
}

const struct bench_case reduce_cases[] = {
    {"dot_shared", "reduce", "dot_shared", prepare_dot, plain_dot, 1e-4},
    {"reduce_shared", "reduce", "reduce_shared", prepare_reduce, plain_reduce, 1e-5},
    {"reduce_shfl", "reduce", "reduce_shfl", prepare_reduce, plain_reduce, 1e-5},
    {"scan", "reduce", "scan", prepare_scan, plain_scan, 0},
    {"histogram", "reduce", "histogram", prepare_histogram, plain_histogram, 0},
    {0},
};
