// Sparse products of matrices (mma.sp), every type and selector, beside plain loops.
#include <cstdio>

#include "sparse.h"

#define ABC_2 "{%4,%5}, {%6,%7}, {%8,%8,%8,%8}, %9, "
#define ABC_4 "{%4,%5,%6,%7}, {%8,%9,%10,%11}, {%12,%12,%12,%12}, %13, "
#define ABC_4_HALVES "{%2,%3,%4,%5}, {%6,%7,%8,%9}, {%10,%10}, %11, "

#define RUN_2(name, selector)                                                                      \
    asm volatile(name " {%0,%1,%2,%3}, " ABC_2 #selector ";"                                       \
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "r"(0), "r"(e))
#define RUN_4(name, selector)                                                                      \
    asm volatile(name " {%0,%1,%2,%3}, " ABC_4 #selector ";"                                       \
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]),    \
                   "r"(b[3]), "r"(0), "r"(e))
#define RUN_HALVES(name, selector)                                                                 \
    asm volatile(name " {%0,%1}, " ABC_4_HALVES #selector ";"                                      \
                 : "=r"(d[0]), "=r"(d[1])                                                          \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]),    \
                   "r"(b[3]), "r"(0), "r"(e))
// Results of floats are registers of another type; 32 bits all the same.
#define FLOATS_2(name, selector)                                                                   \
    do {                                                                                           \
        float *f = (float *)d;                                                                     \
        asm volatile(name " {%0,%1,%2,%3}, " ABC_2 #selector ";"                                   \
                     : "=f"(f[0]), "=f"(f[1]), "=f"(f[2]), "=f"(f[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "f"(0.0f), "r"(e));             \
    } while (0)
#define FLOATS_4(name, selector)                                                                   \
    do {                                                                                           \
        float *f = (float *)d;                                                                     \
        asm volatile(name " {%0,%1,%2,%3}, " ABC_4 #selector ";"                                   \
                     : "=f"(f[0]), "=f"(f[1]), "=f"(f[2]), "=f"(f[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),           \
                       "r"(b[2]), "r"(b[3]), "f"(0.0f), "r"(e));                                   \
    } while (0)
#define OF_4(n, run, name)                                                                         \
    case n * 4: run(name, 0); break;                                                               \
    case n * 4 + 1: run(name, 1); break;                                                           \
    case n * 4 + 2: run(name, 2); break;                                                           \
    case n * 4 + 3: run(name, 3); break;
#define OF_2(n, run, name)                                                                         \
    case n * 4: run(name, 0); break;                                                               \
    case n * 4 + 1: run(name, 1); break;
#define OF_1(n, run, name)                                                                         \
    case n * 4: run(name, 0); break;

__global__ void multiply(sparse_lane *lanes, int which)
{
    sparse_lane *l = &lanes[threadIdx.x];
    uint32_t a[4], b[4], d[4] = {0, 0, 0, 0}, e = l->metadata;

    for (int i = 0; i < 4; i++) {
        a[i] = l->a[i];
        b[i] = l->b[i];
    }
    switch (which) {
        OF_4(0, FLOATS_2, SPARSE_MMA("m16n8k16", "f32.f16.f16.f32"))
        OF_2(1, FLOATS_4, SPARSE_MMA("m16n8k32", "f32.f16.f16.f32"))
        OF_2(2, RUN_HALVES, SPARSE_MMA("m16n8k32", "f16.f16.f16.f16"))
        OF_2(3, FLOATS_4, SPARSE_ORDERED("m16n8k32", "f32.f16.f16.f32"))
        OF_4(4, FLOATS_2, SPARSE_MMA("m16n8k16", "f32.bf16.bf16.f32"))
        OF_2(5, FLOATS_4, SPARSE_MMA("m16n8k32", "f32.bf16.bf16.f32"))
        OF_4(6, FLOATS_2, SPARSE_MMA("m16n8k8", "f32.tf32.tf32.f32"))
        OF_2(7, FLOATS_4, SPARSE_MMA("m16n8k16", "f32.tf32.tf32.f32"))
        OF_2(8, RUN_2, SPARSE_MMA("m16n8k32", "s32.s8.s8.s32"))
        OF_1(9, RUN_4, SPARSE_MMA("m16n8k64", "s32.s8.s8.s32"))
        OF_1(10, RUN_4, SPARSE_MMA("m16n8k64", "s32.u8.u8.s32"))
        OF_2(11, RUN_2, SPARSE_MMA("m16n8k64", "s32.s4.s4.s32"))
        OF_1(12, RUN_4, SPARSE_MMA("m16n8k128", "s32.s4.s4.s32"))
        OF_1(13, RUN_4, SPARSE_MMA("m16n8k128", "s32.u4.u4.s32"))
#if __CUDA_ARCH__ >= 890
        OF_1(14, FLOATS_4, SPARSE_MMA("m16n8k64", "f32.e4m3.e4m3.f32"))
#endif
    default:
        l->unused[0] = 1; // this code has no such instruction
        break;
    }
    for (int i = 0; i < 4; i++)
        l->d[i] = d[i];
}

int main()
{
    sparse_lane lanes[32], *place;
    int product[16][8], bad = 0;

    cudaMalloc(&place, sizeof lanes);
    for (unsigned i = 0; i < SPARSE_CASES; i++)
        for (unsigned selector = 0; selector < sparse_cases[i].selectors; selector++) {
            unsigned wrong = 0;

            for (unsigned seed = 1; seed <= 8; seed++) {
                sparse_fill(&sparse_cases[i], selector, seed * 7919, lanes, product);
                cudaMemcpy(place, lanes, sizeof lanes, cudaMemcpyHostToDevice);
                multiply<<<1, 32>>>(place, i * 4 + selector);
                cudaMemcpy(lanes, place, sizeof lanes, cudaMemcpyDeviceToHost);
                if (sparse_cases[i].kind == SPARSE_E4M3 && lanes[0].unused[0])
                    break;
                wrong += sparse_count_wrong(&sparse_cases[i], lanes, product);
            }
            printf("%s, selector %u: %u wrong\n", sparse_cases[i].name, selector, wrong);
            bad += wrong != 0;
        }
    if (cudaDeviceSynchronize() != cudaSuccess)
        printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return bad != 0;
}
