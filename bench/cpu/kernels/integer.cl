/* Integers and bytes. */
#include "dialect.cl"

/* Rows of bytes times a vector of bytes; four at a time. One row per thread. */
KERNEL(dp4a)(GLOBAL int *out, GLOBAL const int *rows, GLOBAL const int *vector, int words)
{
    const int i = GLOBAL_X;
    int sum = 0;

    for (int j = 0; j < words; j++) {
#ifdef __CUDACC__
        sum = __dp4a(rows[i * words + j], vector[j], sum);
#else
        const char4 a = as_char4(rows[i * words + j]), b = as_char4(vector[j]);

        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
#endif
    }
    out[i] = sum;
}

/* The edit distance of two words of up to 32 letters per thread. The compiler does not know their
 * length, so the row is an array in local memory. */
KERNEL(levenshtein)(GLOBAL int *out, GLOBAL const uchar *a, GLOBAL const uchar *b, int letters)
{
    const int i = GLOBAL_X;
    int row[33];

    for (int x = 0; x <= letters; x++)
        row[x] = x;
    for (int y = 1; y <= letters; y++) {
        const uchar letter = b[i * 32 + y - 1];
        int corner = row[0];

        row[0] = y;
        for (int x = 1; x <= letters; x++) {
            const int up = row[x], change = corner + (a[i * 32 + x - 1] != letter);
            int best = (up < row[x - 1] ? up : row[x - 1]) + 1;

            best = change < best ? change : best;
            corner = up;
            row[x] = best;
        }
    }
    out[i] = row[letters];
}

TABLE uint sha_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

DEVICE uint turn_right(uint x, int n)
{
    return x >> n | x << (32 - n);
}

/* One block of 64 bytes per thread, from SHA-256's start. */
KERNEL(sha256)(GLOBAL uint *out, GLOBAL const uint *in)
{
    const int i = GLOBAL_X;
    uint w[16], s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];

    for (int t = 0; t < 16; t++)
        w[t] = in[i * 16 + t];
#pragma unroll
    for (int t = 0; t < 64; t++) {
        if (t >= 16) {
            const uint x = w[(t + 1) & 15], y = w[(t + 14) & 15];

            w[t & 15] += w[(t + 9) & 15] + (turn_right(x, 7) ^ turn_right(x, 18) ^ x >> 3) +
                         (turn_right(y, 17) ^ turn_right(y, 19) ^ y >> 10);
        }

        const uint one = h + (turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25)) +
                         ((e & f) ^ (~e & g)) + sha_constants[t] + w[t & 15];
        const uint two = (turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22)) +
                         ((a & b) ^ (a & c) ^ (b & c));

        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    out[i * 8 + 0] = s[0] + a;
    out[i * 8 + 1] = s[1] + b;
    out[i * 8 + 2] = s[2] + c;
    out[i * 8 + 3] = s[3] + d;
    out[i * 8 + 4] = s[4] + e;
    out[i * 8 + 5] = s[5] + f;
    out[i * 8 + 6] = s[6] + g;
    out[i * 8 + 7] = s[7] + h;
}

/* Which of the patterns of 8 letters begin at each letter of a text, as bits; and how many do. */
KERNEL(strsearch)(GLOBAL uchar *found, GLOBAL uint *count, GLOBAL const uchar *text,
                  GLOBAL const uchar *patterns, int n)
{
    const int i = GLOBAL_X;
    uint bits = 0;

    if (i >= n)
        return;
    for (int p = 0; p < 8; p++) {
        int k = 0;

        while (k < 8 && text[i + k] == patterns[p * 8 + k])
            k++;
        if (k == 8)
            bits |= 1u << p;
    }
    found[i] = bits;
    if (bits != 0)
        ATOMIC_ADD(count, POPCOUNT(bits));
}
