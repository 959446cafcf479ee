/* Kernels that compute a lot for each element. */
#include "dialect.cl"

/* All pairs, positions in tiles of 256 in shared memory. */
KERNEL(nbody)(GLOBAL float4 *out, GLOBAL const float4 *bodies, int n)
{
    SHARED float4 tile[256];
    const float4 me = bodies[GLOBAL_X];
    float ax = 0, ay = 0, az = 0;

    for (int t = 0; t < n; t += 256) {
        tile[LOCAL_X] = bodies[t + LOCAL_X];
        BARRIER();
        for (int j = 0; j < 256; j++) {
            const float4 b = tile[j];
            const float dx = b.x - me.x, dy = b.y - me.y, dz = b.z - me.z;
            const float r = RSQRT(FMA(dx, dx, FMA(dy, dy, FMA(dz, dz, 0.01f))));
            const float f = b.w * r * r * r;

            ax = FMA(f, dx, ax);
            ay = FMA(f, dy, ay);
            az = FMA(f, dz, az);
        }
        BARRIER();
    }
    out[GLOBAL_X] = FLOAT4(ax, ay, az, 0.0f);
}

DEVICE float normal_below(float d)
{
    const float k = 1.0f / FMA(0.2316419f, FABS(d), 1.0f);
    const float poly =
        k * FMA(k, FMA(k, FMA(k, FMA(k, 1.330274429f, -1.821255978f), 1.781477937f), -0.356563782f),
                0.31938153f);
    const float tail = 0.39894228f * EXP(-0.5f * d * d) * poly;

    return d > 0 ? 1.0f - tail : tail;
}

KERNEL(blackscholes)(GLOBAL float *call, GLOBAL float *put, GLOBAL const float *price,
                     GLOBAL const float *strike, GLOBAL const float *years, int n)
{
    const int i = GLOBAL_X;

    if (i >= n)
        return;

    const float s = price[i], k = strike[i], t = years[i], root = SQRT(t);
    const float d1 = (LOG(s / k) + (0.02f + 0.5f * 0.3f * 0.3f) * t) / (0.3f * root);
    const float d2 = d1 - 0.3f * root;
    const float n1 = normal_below(d1), n2 = normal_below(d2);
    const float discount = k * EXP(-0.02f * t);

    call[i] = s * n1 - discount * n2;
    put[i] = discount * (1.0f - n2) - s * (1.0f - n1);
}

KERNEL(mandel)(GLOBAL uint *out, int side, int most)
{
    const int i = GLOBAL_X;
    const float u = FMA(3.0f / side, (float)(i % side), -2.0f);
    const float v = FMA(3.0f / side, (float)(i / side), -1.5f);
    float x = 0, y = 0;
    uint n = 0;

    while (n < most && FMA(x, x, y * y) < 4.0f) {
        const float next = FMA(x, x, FMA(-y, y, u));

        y = FMA(2.0f * x, y, v);
        x = next;
        n++;
    }
    out[i] = n;
}

/* Points in the unit circle, by xorshift. */
KERNEL(montecarlo)(GLOBAL uint *out, int draws)
{
    uint state = GLOBAL_X * 2654435761u + 1, hits = 0;

    for (int i = 0; i < draws; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;

        const float x = (state & 0xffff) * (1.0f / 65536.0f);
        const float y = (state >> 16) * (1.0f / 65536.0f);

        if (FMA(x, x, y * y) < 1.0f)
            hits++;
    }
    out[GLOBAL_X] = hits;
}

/* Philox 4x32-10: four random words per thread. */
KERNEL(philox)(GLOBAL uint *out, uint key0, uint key1, int n)
{
    const int i = GLOBAL_X;
    uint a = i, b = 0, c = 7, d = 0;

    if (i >= n)
        return;
    for (int round = 0; round < 10; round++) {
        const uint high0 = MULHI(0xD2511F53u, a), low0 = 0xD2511F53u * a;
        const uint high1 = MULHI(0xCD9E8D57u, c), low1 = 0xCD9E8D57u * c;

        a = high1 ^ b ^ key0;
        b = low1;
        c = high0 ^ d ^ key1;
        d = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    out[i] = a;
    out[n + i] = b;
    out[2 * n + i] = c;
    out[3 * n + i] = d;
}
