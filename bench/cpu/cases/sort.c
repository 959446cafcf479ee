/* The cases of kernels/sort.cl. */
#include <math.h>
#include <string.h>

#include "../cases.h"

static void
prepare_bitonic(struct job *job)
{
    const int blocks = 128;

    job_output(job, WORDS, (size_t)blocks * 512);
    job_words(job, (size_t)blocks * 512, 0);
    job_shape(job, blocks * 256, 1, 256, 1);
}

/* The same network: what is measured is the exchange, not the algorithm. */
static void
bitonic(uint32_t *restrict data)
{
    for (int size = 2; size <= 512; size <<= 1) {
        for (int s = size >> 1; s > 0; s >>= 1) {
            for (int base = 0; base < 512; base += 2 * s) {
                const int up = (base & size) == 0;

                for (int i = base; i < base + s; i++) {
                    const uint32_t a = data[i], b = data[i + s];
                    const uint32_t low = a < b ? a : b, high = a < b ? b : a;

                    data[i] = up ? low : high;
                    data[i + s] = up ? high : low;
                }
            }
        }
    }
}

static void
plain_bitonic(const struct job *job)
{
    uint32_t *out = data_of(job, 0);
    const uint32_t *in = data_of(job, 1);

    for (unsigned b = 0; b < job->grid[0]; b++) {
        memcpy(out + (size_t)b * 512, in + (size_t)b * 512, 512 * sizeof *out);
        bitonic(out + (size_t)b * 512);
    }
}

static void
prepare_radix(struct job *job)
{
    const int blocks = 256;

    job_output(job, WORDS, (size_t)blocks * 256);
    job_output(job, WORDS, (size_t)blocks * 16);
    job_words(job, (size_t)blocks * 256, 0);
    job_int(job, 8);
    job_shape(job, blocks * 256, 1, 256, 1);
}

static void
radix(uint32_t *restrict out, uint32_t *restrict counts, const uint32_t *restrict in, int shift,
      int blocks)
{
    for (int b = 0; b < blocks; b++, in += 256, out += 256) {
        uint32_t bins[16] = {0}, at[16], sum = 0;

        for (int i = 0; i < 256; i++)
            bins[in[i] >> shift & 15]++;
        for (int d = 0; d < 16; d++) {
            at[d] = sum;
            sum += bins[d];
            counts[d * blocks + b] = bins[d];
        }
        for (int i = 0; i < 256; i++)
            out[at[in[i] >> shift & 15]++] = in[i];
    }
}

static void
plain_radix(const struct job *job)
{
    radix(data_of(job, 0), data_of(job, 1), data_of(job, 2), int_of(job, 3), (int)job->grid[0]);
}

static void
prepare_fft(struct job *job)
{
    const int blocks = 64;

    job_output(job, FLOATS, (size_t)blocks * 2048);
    job_floats(job, (size_t)blocks * 2048, -1, 1);

    float *roots = job_buffer(job, FLOATS, 2048);

    for (int i = 0; i < 1024; i++) {
        roots[i] = (float)cos(-6.283185307179586 * i / 1024);
        roots[1024 + i] = (float)sin(-6.283185307179586 * i / 1024);
    }
    job_shape(job, blocks * 256, 1, 256, 1);
}

/* One step by fours: from x (real parts, then imaginary) to y. */
static void
fft_step(float *restrict y, const float *restrict x, const float *restrict roots, int s)
{
    for (int base = 0; base < 256; base += s) {
        for (int j = 0; j < s; j++) {
            const int t = base + j, to = base * 4 + j;
            float ar[4], ai[4];

            for (int k = 0; k < 4; k++) {
                const float c = roots[j * k * (256 / s)], d = roots[1024 + j * k * (256 / s)];
                const float r = x[t + 256 * k], i = x[1024 + t + 256 * k];

                ar[k] = r * c - i * d;
                ai[k] = r * d + i * c;
            }

            const float pr = ar[0] + ar[2], pi = ai[0] + ai[2];
            const float mr = ar[0] - ar[2], mi = ai[0] - ai[2];
            const float qr = ar[1] + ar[3], qi = ai[1] + ai[3];
            const float nr = ar[1] - ar[3], ni = ai[1] - ai[3];

            y[to] = pr + qr;
            y[1024 + to] = pi + qi;
            y[to + s] = mr + ni;
            y[1024 + to + s] = mi - nr;
            y[to + 2 * s] = pr - qr;
            y[1024 + to + 2 * s] = pi - qi;
            y[to + 3 * s] = mr - ni;
            y[1024 + to + 3 * s] = mi + nr;
        }
    }
}

static void
plain_fft(const struct job *job)
{
    float *out = data_of(job, 0), one[2048], two[2048];
    const float *in = data_of(job, 1), *roots = data_of(job, 2);

    for (unsigned b = 0; b < job->grid[0]; b++, in += 2048, out += 2048) {
        fft_step(one, in, roots, 1);
        fft_step(two, one, roots, 4);
        fft_step(one, two, roots, 16);
        fft_step(two, one, roots, 64);
        fft_step(out, two, roots, 256);
    }
}

const struct bench_case sort_cases[] = {
    {"bitonic", "sort", "bitonic", prepare_bitonic, plain_bitonic, 0},
    {"radix", "sort", "radix", prepare_radix, plain_radix, 0},
    {"fft", "sort", "fft", prepare_fft, plain_fft, 1e-5},
    {0},
};
