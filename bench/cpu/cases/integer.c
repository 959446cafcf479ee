/* The cases of kernels/integer.cl. */
#include "../cases.h"

static void
prepare_dp4a(struct job *job)
{
    const int rows = 4096, words = 32;

    job_output(job, WORDS, (size_t)rows);
    job_words(job, (size_t)rows * words, 0);
    job_words(job, (size_t)words, 0);
    job_int(job, words);
    job_shape(job, rows, 1, 128, 1);
}

static void
dot_bytes(int32_t *restrict out, const int8_t *restrict rows, const int8_t *restrict vector,
          int count, int bytes)
{
    for (int i = 0; i < count; i++) {
        int32_t sum = 0;

        for (int j = 0; j < bytes; j++)
            sum += rows[i * bytes + j] * vector[j];
        out[i] = sum;
    }
}

static void
plain_dp4a(const struct job *job)
{
    dot_bytes(data_of(job, 0), data_of(job, 1), data_of(job, 2), (int)(job->grid[0] * 128),
              int_of(job, 3) * 4);
}

static void
prepare_levenshtein(struct job *job)
{
    const int pairs = 4096;

    job_output(job, WORDS, (size_t)pairs);
    job_bytes(job, (size_t)pairs * 32, "acgt");
    job_bytes(job, (size_t)pairs * 32, "acgt");
    job_int(job, 32);
    job_shape(job, pairs, 1, 128, 1);
}

static int
distance(const uint8_t *a, const uint8_t *b, int letters)
{
    int row[33];

    for (int x = 0; x <= letters; x++)
        row[x] = x;
    for (int y = 1; y <= letters; y++) {
        int corner = row[0];

        row[0] = y;
        for (int x = 1; x <= letters; x++) {
            const int up = row[x], change = corner + (a[x - 1] != b[y - 1]);
            int best = (up < row[x - 1] ? up : row[x - 1]) + 1;

            best = change < best ? change : best;
            corner = up;
            row[x] = best;
        }
    }
    return row[letters];
}

static void
plain_levenshtein(const struct job *job)
{
    int32_t *out = data_of(job, 0);
    const uint8_t *a = data_of(job, 1), *b = data_of(job, 2);

    for (int i = 0; i < (int)(job->grid[0] * 128); i++)
        out[i] = distance(a + (size_t)i * 32, b + (size_t)i * 32, int_of(job, 3));
}

static void
prepare_sha256(struct job *job)
{
    const int blocks = 8192;

    job_output(job, WORDS, (size_t)blocks * 8);
    job_words(job, (size_t)blocks * 16, 0);
    job_shape(job, blocks, 1, 128, 1);
}

static const uint32_t sha_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t
turn_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void
sha256_block(uint32_t out[8], const uint32_t in[16])
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint32_t w[64], s[8];

    for (int t = 0; t < 16; t++)
        w[t] = in[t];
    for (int t = 16; t < 64; t++) {
        const uint32_t x = w[t - 15], y = w[t - 2];

        w[t] = w[t - 16] + w[t - 7] + (turn_right(x, 7) ^ turn_right(x, 18) ^ x >> 3) +
               (turn_right(y, 17) ^ turn_right(y, 19) ^ y >> 10);
    }
    for (int i = 0; i < 8; i++)
        s[i] = start[i];
    for (int t = 0; t < 64; t++) {
        const uint32_t e = s[4], a = s[0];
        const uint32_t one = s[7] + (turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25)) +
                             ((e & s[5]) ^ (~e & s[6])) + sha_constants[t] + w[t];
        const uint32_t two = (turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22)) +
                             ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));

        for (int i = 7; i > 0; i--)
            s[i] = s[i - 1];
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        out[i] = start[i] + s[i];
}

static void
plain_sha256(const struct job *job)
{
    uint32_t *out = data_of(job, 0);
    const uint32_t *in = data_of(job, 1);

    for (int i = 0; i < (int)(job->grid[0] * 128); i++)
        sha256_block(out + (size_t)i * 8, in + (size_t)i * 16);
}

static void
prepare_strsearch(struct job *job)
{
    const int n = 256 << 10;

    job_output(job, BYTES, (size_t)n);
    job_output(job, WORDS, 1);
    job_bytes(job, (size_t)n + 8, "acgt");
    job_bytes(job, 64, "acgt");
    job_int(job, n);
    job_shape(job, n, 1, 256, 1);
}

static void
strsearch(uint8_t *restrict found, uint32_t *restrict count, const uint8_t *restrict text,
          const uint8_t *restrict patterns, int n)
{
    for (int i = 0; i < n; i++) {
        unsigned bits = 0;

        for (int p = 0; p < 8; p++) {
            int k = 0;

            while (k < 8 && text[i + k] == patterns[p * 8 + k])
                k++;
            if (k == 8)
                bits |= 1u << p;
        }
        found[i] = (uint8_t)bits;
        *count += (uint32_t)__builtin_popcount(bits);
    }
}

static void
plain_strsearch(const struct job *job)
{
    strsearch(data_of(job, 0), data_of(job, 1), data_of(job, 2), data_of(job, 3), int_of(job, 4));
}

const struct bench_case integer_cases[] = {
    {"dp4a", "integer", "dp4a", prepare_dp4a, plain_dp4a, 0},
    {"levenshtein", "integer", "levenshtein", prepare_levenshtein, plain_levenshtein, 0},
    {"sha256", "integer", "sha256", prepare_sha256, plain_sha256, 0},
    {"strsearch", "integer", "strsearch", prepare_strsearch, plain_strsearch, 0},
    {0},
};
