/* Integer arithmetic: all widths, high halves, carry chains, saturation, division by every sign,
 * shifts by too much, dot products of bytes.
 */
#include "run.cuh"

__constant__ unsigned values[16] = {0,          1,          2,          3,          7,
                                    31,         32,         0x7f,       0x80,       0xffff,
                                    0x10000,    0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe,
                                    0xffffffff};

#define A values[ME / 16]
#define B values[ME % 16]

KERNEL(add_sub)
{
    out[ME] = (A + B) ^ ((A - B) << 1);
}

KERNEL(multiply)
{
    out[ME] = A * B;
    out[256 + ME] = __umulhi(A, B);
    out[512 + ME] = (unsigned)__mulhi((int)A, (int)B);
    out[768 + ME] = (unsigned)__mul24((int)A, (int)B) ^ __umul24(A, B);
}

/* Division by zero gives all ones on the hardware, but in PTX "an unspecified, machine-specific
 * value", so it is left out. */
KERNEL(divide)
{
    const unsigned b = B ? B : 5;
    const int s = (int)b == -1 && A == 0x80000000 ? 3 : (int)b;

    out[ME] = A / b;
    out[256 + ME] = A % b;
    out[512 + ME] = (unsigned)((int)A / s);
    out[768 + ME] = (unsigned)((int)A % s);
}

KERNEL(wide)
{
    const unsigned long long a = ((unsigned long long)A << 32) | B;
    const unsigned long long b = ((unsigned long long)B << 32) | (A | 1);
    const unsigned long long q = a / b;
    const unsigned long long m = __umul64hi(a, b);
    const long long s = __mul64hi((long long)a, (long long)b);
    const long long d = (long long)a / ((long long)b | 2);

    out[ME] = (unsigned)q ^ (unsigned)(q >> 32);
    out[256 + ME] = (unsigned)m ^ (unsigned)(m >> 32);
    out[512 + ME] = (unsigned)s ^ (unsigned)((unsigned long long)s >> 32);
    out[768 + ME] = (unsigned)d ^ (unsigned)((unsigned long long)d >> 32);
}

KERNEL(carry)
{
    unsigned low;
    unsigned middle;
    unsigned high;

    asm("add.cc.u32 %0, %3, %4;\n\t"
        "addc.cc.u32 %1, %3, %3;\n\t"
        "addc.u32 %2, %4, %4;"
        : "=r"(low), "=r"(middle), "=r"(high)
        : "r"(A), "r"(B));
    out[ME] = low ^ (middle << 7) ^ (high << 13);
    asm("sub.cc.u32 %0, %3, %4;\n\t"
        "subc.cc.u32 %1, %4, %3;\n\t"
        "subc.u32 %2, 0, 0;"
        : "=r"(low), "=r"(middle), "=r"(high)
        : "r"(A), "r"(B));
    out[256 + ME] = low ^ (middle << 7) ^ (high << 13);
    asm("mad.lo.cc.u32 %0, %3, %4, %3;\n\t"
        "madc.hi.cc.u32 %1, %3, %4, %4;\n\t"
        "addc.u32 %2, 0, 0;"
        : "=r"(low), "=r"(middle), "=r"(high)
        : "r"(A), "r"(B));
    out[512 + ME] = low ^ (middle << 7) ^ (high << 13);
}

KERNEL(saturate)
{
    int r;
    int s;
    int m;

    asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(A), "r"(B));
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(s) : "r"(A), "r"(B));
    asm("mad.hi.sat.s32 %0, %1, %2, %1;" : "=r"(m) : "r"(A), "r"(B));
    out[ME] = (unsigned)r;
    out[256 + ME] = (unsigned)s;
    out[512 + ME] = (unsigned)m;
}

/* The same with three different operands. */
KERNEL(saturate_three)
{
    const unsigned c = values[(ME * 7 + ME / 16 + 3) % 16];
    int m;
    int w;

    asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(m) : "r"(A), "r"(B), "r"(c));
    asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(w) : "r"(A), "r"(B), "r"(c));
    out[ME] = (unsigned)m;
    out[256 + ME] = (unsigned)w;
}

KERNEL(compare)
{
    const int a = (int)A;
    const int b = (int)B;

    out[ME] = (A < B) | (A <= B) << 1 | (A > B) << 2 | (a < b) << 3 | (a >= b) << 4 |
              (a == b) << 5 | (unsigned)(min(a, b) == a) << 6 | (unsigned)(max(A, B) == A) << 7;
    out[256 + ME] = (unsigned)(abs(a) + min(a, b)) ^ max(A, B);
    out[512 + ME] = __sad(a, b, 5u) + __usad(A, B, 7u);
    out[768 + ME] = (unsigned)__hadd(a, b) ^ __uhadd(A, B) ^ (unsigned)__rhadd(a, b);
}

KERNEL(shift)
{
    unsigned l;
    unsigned r;
    int a;

    asm("shl.b32 %0, %1, %2;" : "=r"(l) : "r"(A), "r"(B));
    asm("shr.u32 %0, %1, %2;" : "=r"(r) : "r"(A), "r"(B));
    asm("shr.s32 %0, %1, %2;" : "=r"(a) : "r"(A), "r"(B));
    out[ME] = l;
    out[256 + ME] = r;
    out[512 + ME] = (unsigned)a;
    out[768 + ME] = __funnelshift_l(A, B, B) ^ __funnelshift_rc(A, B, A);
}

KERNEL(narrow)
{
    const short a = (short)A;
    const short b = (short)(B | 1);
    const signed char c = (signed char)A;
    const signed char d = (signed char)B;

    out[ME] = (unsigned)(unsigned short)(a * b) | (unsigned)(unsigned short)(a / b) << 16;
    out[256 + ME] = (unsigned char)(c * d) | (unsigned)(unsigned char)(c + d) << 8 |
                    (unsigned)(unsigned char)(c >> (d & 7)) << 16;
}

KERNEL(dot)
{
    out[ME] = (unsigned)__dp4a((int)A, (int)B, (int)ME) ^ __dp4a(A, B, (unsigned)ME);
    out[256 + ME] = (unsigned)__dp2a_lo((int)A, (int)B, (int)ME) ^ __dp2a_hi(A, B, (unsigned)ME);
}

KERNEL(video)
{
    out[ME] = __vadd4(A, B) ^ __vsubss4(A, B);
    out[256 + ME] = __vmaxs2(A, B) ^ __vabsdiffu4(A, B) ^ __vcmpgts4(A, B);
}

RUNS(
    RUN(add_sub, 4, 64, 0, 256),
    RUN(multiply, 4, 64, 0, 1024),
    RUN(divide, 4, 64, 0, 1024),
    RUN(wide, 4, 64, 0, 1024),
    RUN(carry, 4, 64, 0, 768),
    RUN(saturate, 4, 64, 0, 768),
    RUN(saturate_three, 4, 64, 0, 512),
    RUN(compare, 4, 64, 0, 1024),
    RUN(shift, 4, 64, 0, 1024),
    RUN(narrow, 4, 64, 0, 512),
    RUN(dot, 4, 64, 0, 512),
    RUN(video, 4, 64, 0, 512))
