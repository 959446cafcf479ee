/* The cases of kernels/math.cl. */
#include <math.h>

#include "../cases.h"

struct body {
    float x, y, z, w;
};

static void
prepare_nbody(struct job *job)
{
    const int n = 1024;

    job_output(job, FLOATS, (size_t)n * 4);
    job_floats(job, (size_t)n * 4, 0.5f, 1.5f);
    job_int(job, n);
    job_shape(job, n, 1, 256, 1);
}

static void
nbody(struct body *restrict out, const struct body *restrict bodies, int n)
{
    for (int i = 0; i < n; i += 16) {
        float ax[16] = {0}, ay[16] = {0}, az[16] = {0};

        for (int j = 0; j < n; j++) {
            for (int t = 0; t < 16; t++) {
                const float dx = bodies[j].x - bodies[i + t].x;
                const float dy = bodies[j].y - bodies[i + t].y;
                const float dz = bodies[j].z - bodies[i + t].z;
                const float r = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
                const float f = bodies[j].w * r * r * r;

                ax[t] += f * dx;
                ay[t] += f * dy;
                az[t] += f * dz;
            }
        }
        for (int t = 0; t < 16; t++)
            out[i + t] = (struct body){ax[t], ay[t], az[t], 0};
    }
}

static void
plain_nbody(const struct job *job)
{
    nbody(data_of(job, 0), data_of(job, 1), int_of(job, 2));
}

static void
prepare_blackscholes(struct job *job)
{
    const int n = 64 << 10;

    job_output(job, FLOATS, (size_t)n);
    job_output(job, FLOATS, (size_t)n);
    job_floats(job, (size_t)n, 5, 30);
    job_floats(job, (size_t)n, 1, 100);
    job_floats(job, (size_t)n, 0.25f, 10);
    job_int(job, n);
    job_shape(job, n, 1, 128, 1);
}

static float
normal_below(float d)
{
    const float k = 1 / (1 + 0.2316419f * fabsf(d));
    const float poly =
        k * (0.31938153f +
             k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float tail = 0.39894228f * expf(-0.5f * d * d) * poly;

    return d > 0 ? 1 - tail : tail;
}

static void
blackscholes(float *restrict call, float *restrict put, const float *restrict price,
             const float *restrict strike, const float *restrict years, int n)
{
    for (int i = 0; i < n; i++) {
        const float s = price[i], k = strike[i], t = years[i], root = sqrtf(t);
        const float d1 = (logf(s / k) + (0.02f + 0.5f * 0.3f * 0.3f) * t) / (0.3f * root);
        const float d2 = d1 - 0.3f * root;
        const float n1 = normal_below(d1), n2 = normal_below(d2);
        const float discount = k * expf(-0.02f * t);

        call[i] = s * n1 - discount * n2;
        put[i] = discount * (1 - n2) - s * (1 - n1);
    }
}

static void
plain_blackscholes(const struct job *job)
{
    blackscholes(data_of(job, 0), data_of(job, 1), data_of(job, 2), data_of(job, 3),
                 data_of(job, 4), int_of(job, 5));
}

static void
prepare_mandel(struct job *job)
{
    const int side = 256;

    job_output(job, WORDS, (size_t)side * side);
    job_int(job, side);
    job_int(job, 200);
    job_shape(job, side * side, 1, 128, 1);
}

static void
mandel(uint32_t *restrict out, int side, uint32_t most)
{
    for (int i = 0; i < side * side; i++) {
        const float u = __builtin_fmaf(3.0f / (float)side, (float)(i % side), -2.0f);
        const float v = __builtin_fmaf(3.0f / (float)side, (float)(i / side), -1.5f);
        float x = 0, y = 0;
        uint32_t n = 0;

        while (n < most && __builtin_fmaf(x, x, y * y) < 4) {
            const float next = __builtin_fmaf(x, x, __builtin_fmaf(-y, y, u));

            y = __builtin_fmaf(2 * x, y, v);
            x = next;
            n++;
        }
        out[i] = n;
    }
}

static void
plain_mandel(const struct job *job)
{
    mandel(data_of(job, 0), int_of(job, 1), (uint32_t)int_of(job, 2));
}

static void
prepare_montecarlo(struct job *job)
{
    const int threads = 8192;

    job_output(job, WORDS, (size_t)threads);
    job_int(job, 256);
    job_shape(job, threads, 1, 256, 1);
}

static void
montecarlo(uint32_t *restrict out, int threads, int draws)
{
    for (int t = 0; t < threads; t++) {
        uint32_t state = (uint32_t)t * 2654435761u + 1, hits = 0;

        for (int i = 0; i < draws; i++) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;

            const float x = (float)(state & 0xffff) * (1.0f / 65536.0f);
            const float y = (float)(state >> 16) * (1.0f / 65536.0f);

            hits += __builtin_fmaf(x, x, y * y) < 1;
        }
        out[t] = hits;
    }
}

static void
plain_montecarlo(const struct job *job)
{
    montecarlo(data_of(job, 0), (int)(job->grid[0] * job->block[0]), int_of(job, 1));
}

static void
prepare_philox(struct job *job)
{
    const int n = 64 << 10;

    job_output(job, WORDS, (size_t)n * 4);
    job_int(job, 0x12345678);
    job_int(job, 0x3579bdf1);
    job_int(job, n);
    job_shape(job, n, 1, 256, 1);
}

static void
philox(uint32_t *restrict out, uint32_t key0, uint32_t key1, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t a = (uint32_t)i, b = 0, c = 7, d = 0, k0 = key0, k1 = key1;

        for (int round = 0; round < 10; round++) {
            const uint64_t one = 0xD2511F53ull * a, two = 0xCD9E8D57ull * c;

            a = (uint32_t)(two >> 32) ^ b ^ k0;
            b = (uint32_t)two;
            c = (uint32_t)(one >> 32) ^ d ^ k1;
            d = (uint32_t)one;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        out[i] = a;
        out[n + i] = b;
        out[2 * n + i] = c;
        out[3 * n + i] = d;
    }
}

static void
plain_philox(const struct job *job)
{
    philox(data_of(job, 0), (uint32_t)int_of(job, 1), (uint32_t)int_of(job, 2), int_of(job, 3));
}

const struct bench_case math_cases[] = {
    {"nbody", "math", "nbody", prepare_nbody, plain_nbody, 1e-4},
    {"blackscholes", "math", "blackscholes", prepare_blackscholes, plain_blackscholes, 1e-5},
    {"mandel", "math", "mandel", prepare_mandel, plain_mandel, 0},
    {"montecarlo", "math", "montecarlo", prepare_montecarlo, plain_montecarlo, 0},
    {"philox", "math", "philox", prepare_philox, plain_philox, 0},
    {0},
};
