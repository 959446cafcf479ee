/* The cases of kernels/rows.cl. */
#include <math.h>

#include "../cases.h"

static void
prepare_softmax(struct job *job)
{
    const int rows = 128, columns = 1024;

    job_output(job, FLOATS, (size_t)rows * columns);
    job_floats(job, (size_t)rows * columns, -4, 4);
    job_int(job, columns);
    job_shape(job, rows * 256, 1, 256, 1);
}

static void
softmax(float *restrict out, const float *restrict in, int rows, int columns)
{
    for (int r = 0; r < rows; r++, in += columns, out += columns) {
        float top = in[0], sum = 0;

        for (int i = 1; i < columns; i++)
            top = in[i] > top ? in[i] : top;
        for (int i = 0; i < columns; i++)
            sum += out[i] = expf(in[i] - top);
        sum = 1 / sum;
        for (int i = 0; i < columns; i++)
            out[i] *= sum;
    }
}

static void
plain_softmax(const struct job *job)
{
    softmax(data_of(job, 0), data_of(job, 1), (int)job->grid[0], int_of(job, 2));
}

static void
prepare_layernorm(struct job *job)
{
    const int rows = 512, columns = 512;

    job_output(job, FLOATS, (size_t)rows * columns);
    job_floats(job, (size_t)rows * columns, -4, 4);
    job_floats(job, (size_t)columns, 0, 2);
    job_floats(job, (size_t)columns, -1, 1);
    job_int(job, columns);
    job_shape(job, rows * 32, 1, 256, 1);
}

static void
layernorm(float *restrict out, const float *restrict in, const float *restrict gain,
          const float *restrict bias, int rows, int columns)
{
    for (int r = 0; r < rows; r++, in += columns, out += columns) {
        float part[16] = {0}, sum = 0, square = 0;

        for (int i = 0; i < columns; i += 16)
            for (int t = 0; t < 16; t++)
                part[t] += in[i + t];
        for (int t = 0; t < 16; t++)
            sum += part[t];

        const float mean = sum / (float)columns;

        for (int t = 0; t < 16; t++)
            part[t] = 0;
        for (int i = 0; i < columns; i += 16)
            for (int t = 0; t < 16; t++)
                part[t] += (in[i + t] - mean) * (in[i + t] - mean);
        for (int t = 0; t < 16; t++)
            square += part[t];

        const float scale = 1 / sqrtf(square / (float)columns + 1e-5f);

        for (int i = 0; i < columns; i++)
            out[i] = (in[i] - mean) * scale * gain[i] + bias[i];
    }
}

static void
plain_layernorm(const struct job *job)
{
    layernorm(data_of(job, 0), data_of(job, 1), data_of(job, 2), data_of(job, 3),
              (int)job->grid[0] * 8, int_of(job, 4));
}

static void
prepare_flash(struct job *job)
{
    const int heads = 4, n = 256;

    job_output(job, FLOATS, (size_t)heads * n * 32);
    for (int i = 0; i < 3; i++)
        job_floats(job, (size_t)heads * n * 32, -1, 1);
    job_int(job, n);
    job_shape(job, n, heads, 64, 1);
}

/* One row of the attention matrix at a time. */
static void
attention(float *restrict out, const float *restrict q, const float *restrict k,
          const float *restrict v, int n)
{
    float score[1024];

    for (int i = 0; i < n; i++) {
        float top = -3e38f, total = 0, sum[32] = {0};

        for (int j = 0; j < n; j++) {
            float part[4] = {0};

            for (int d = 0; d < 32; d += 4)
                for (int t = 0; t < 4; t++)
                    part[t] += q[i * 32 + d + t] * k[j * 32 + d + t];
            score[j] = (part[0] + part[1] + part[2] + part[3]) * 0.17677669f;
            top = score[j] > top ? score[j] : top;
        }
        for (int j = 0; j < n; j++)
            total += score[j] = expf(score[j] - top);
        for (int j = 0; j < n; j++)
            for (int d = 0; d < 32; d++)
                sum[d] += score[j] * v[j * 32 + d];
        for (int d = 0; d < 32; d++)
            out[i * 32 + d] = sum[d] / total;
    }
}

static void
plain_flash(const struct job *job)
{
    const int n = int_of(job, 4);

    for (unsigned h = 0; h < job->grid[1]; h++) {
        const size_t at = (size_t)h * (size_t)n * 32;

        attention((float *)data_of(job, 0) + at, (float *)data_of(job, 1) + at,
                  (float *)data_of(job, 2) + at, (float *)data_of(job, 3) + at, n);
    }
}

const struct bench_case rows_cases[] = {
    {"softmax", "rows", "softmax", prepare_softmax, plain_softmax, 1e-5},
    {"layernorm", "rows", "layernorm", prepare_layernorm, plain_layernorm, 1e-5},
    {"flash", "rows", "flash", prepare_flash, plain_flash, 1e-4},
    {0},
};
