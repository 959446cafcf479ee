/* Logic and bits: counting, finding, reversing, fields, permuting bytes, three-input logic,
 * rotation, predicates.
 */
#include "run.cuh"

__device__ static unsigned
mix(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352d;
    x ^= x >> 15;
    x *= 0x846ca68b;
    return x ^ x >> 16;
}

/* Words with few, many and no bits set. */
#define V (ME < 34 ? (ME ? 1u << (ME - 1) : 0u) - (ME == 33) : mix(ME))

KERNEL(count)
{
    const unsigned long long w = (unsigned long long)V << 32 | mix(V);

    out[ME] = __popc(V) | __clz((int)V) << 8 | __ffs((int)V) << 16;
    out[64 + ME] = __popcll(w) | __clzll((long long)w) << 8 | __ffsll((long long)w) << 16;
    out[128 + ME] = __brev(V);
    out[192 + ME] = (unsigned)__brevll(w);
}

KERNEL(find)
{
    unsigned u;
    int s;
    unsigned a;

    asm("bfind.u32 %0, %1;" : "=r"(u) : "r"(V));
    asm("bfind.s32 %0, %1;" : "=r"(s) : "r"(V));
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(a) : "r"(V));
    out[ME] = u;
    out[64 + ME] = (unsigned)s;
    out[128 + ME] = a;
    out[192 + ME] = __fns(V, 3, (int)(ME % 7) - 3);
}

KERNEL(fields)
{
    unsigned u;
    int s;
    unsigned i;
    unsigned long long w;

    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(u) : "r"(mix(V)), "r"(ME % 37), "r"(ME * 7 % 39));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(mix(V)), "r"(ME % 37), "r"(ME * 7 % 39));
    asm("bfi.b32 %0, %1, %2, %3, %4;"
        : "=r"(i)
        : "r"(V), "r"(mix(V)), "r"(ME % 37), "r"(ME * 5 % 39));
    asm("bfe.s64 %0, %1, %2, %3;"
        : "=l"(w)
        : "l"((unsigned long long)mix(V) << 20), "r"(ME), "r"(ME * 3 % 70));
    out[ME] = u;
    out[64 + ME] = (unsigned)s;
    out[128 + ME] = i;
    out[192 + ME] = (unsigned)w ^ (unsigned)(w >> 32);
}

KERNEL(permute)
{
    unsigned r;
    unsigned f;

    out[ME] = __byte_perm(V, mix(V), mix(ME) & 0xffff);
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(V), "r"(mix(V)), "r"(ME & 3));
    asm("prmt.b32.rc8 %0, %1, %2, %3;" : "=r"(f) : "r"(V), "r"(mix(V)), "r"(ME & 3));
    out[64 + ME] = r;
    out[128 + ME] = f;
}

KERNEL(logic)
{
    const unsigned a = V;
    const unsigned b = mix(a);
    const unsigned c = mix(b);
    unsigned x;
    unsigned y;
    unsigned z;

    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(x) : "r"(a), "r"(b), "r"(c));
    asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
    asm("cnot.b32 %0, %1;" : "=r"(z) : "r"(a & (b & 1)));
    out[ME] = x;
    out[64 + ME] = y;
    out[128 + ME] = z ^ ~(a & b) ^ (a | c);
    out[192 + ME] = __funnelshift_l(a, a, ME) ^ __funnelshift_r(a, b, ME);
}

KERNEL(predicates)
{
    unsigned r;

    asm("{\n\t"
        ".reg .pred p, q, s;\n\t"
        "setp.lt.u32 p|q, %1, %2;\n\t"
        "setp.gt.and.s32 s, %1, %2, p;\n\t"
        "xor.pred p, p, s;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "@q add.u32 %0, %0, 2;\n\t"
        "@!s add.u32 %0, %0, 4;\n\t"
        "}"
        : "=r"(r)
        : "r"(V), "r"(mix(V)));
    out[ME] = r;
    asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(V), "r"(mix(V)), "r"((int)mix(ME)));
    out[64 + ME] = r;
    asm("set.le.u32.s32 %0, %1, %2;" : "=r"(r) : "r"(V), "r"(mix(V)));
    out[128 + ME] = r;
}

RUNS(
    RUN(count, 1, 64, 0, 256),
    RUN(find, 1, 64, 0, 256),
    RUN(fields, 1, 64, 0, 256),
    RUN(permute, 1, 64, 0, 192),
    RUN(logic, 1, 64, 0, 256),
    RUN(predicates, 1, 64, 0, 192))
