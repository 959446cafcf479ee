/* Matrices: the wmma header, and mma, ldmatrix, movmatrix, stmatrix by hand. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda::wmma;

template <typename A, typename B, int M, int N, int K, typename LA, typename LB>
__device__ void
one(const A *a, const A *b, B *c)
{
    fragment<matrix_a, M, N, K, A, LA> fa;
    fragment<matrix_b, M, N, K, A, LB> fb;
    fragment<accumulator, M, N, K, B> fc;

    load_matrix_sync(fa, a, 16);
    load_matrix_sync(fb, b, 16);
    load_matrix_sync(fc, c, 16, mem_row_major);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(c, fc, 16, mem_col_major);
}

__global__ void
wmmas(half *h, float *f, signed char *s, unsigned char *u, int *i)
{
    __shared__ half sh[512];

    one<half, float, 16, 16, 16, row_major, col_major>(h, h, f);
    one<half, half, 32, 8, 16, col_major, row_major>(sh, sh, h);
    one<half, float, 8, 32, 16, row_major, col_major>(h, sh, f);
    one<signed char, int, 16, 16, 16, row_major, col_major>(s, s, i);
    one<unsigned char, int, 32, 8, 16, row_major, col_major>(u, u, i);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__global__ void
wmmas80(__nv_bfloat16 *b, float *f, double *d)
{
    one<__nv_bfloat16, float, 16, 16, 16, row_major, col_major>(b, b, f);
    one<double, double, 8, 8, 4, row_major, col_major>(d, d, d);
    fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> fa;
    fragment<matrix_b, 16, 16, 8, precision::tf32, col_major> fb;
    fragment<accumulator, 16, 16, 8, float> fc;

    load_matrix_sync(fa, f, 16);
    load_matrix_sync(fb, f, 16);
    fill_fragment(fc, 0.f);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(f, fc, 16, mem_row_major);
}

__global__ void
mmas(unsigned *p, float *f)
{
    unsigned a = (unsigned)__cvta_generic_to_shared(p);

    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(p[0]), "=r"(p[1]), "=r"(p[2]), "=r"(p[3]) : "r"(a));
    asm volatile("ldmatrix.sync.aligned.x2.m8n8.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(p[0]), "=r"(p[1]) : "r"(a));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
                 : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(p[10]), "+r"(p[11]), "+r"(p[12]), "+r"(p[13])
                 : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])
                 : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]));
    asm volatile("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, "
                 "{%6,%7,%8,%9}, {%0,%1}, %10, 0x1;"
                 : "+r"(p[20]), "+r"(p[21])
                 : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]), "r"(p[6]),
                   "r"(p[7]), "r"(p[8]));
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(p[9]) : "r"(p[10]));
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(a), "r"(p[0]),
                 "r"(p[1]), "r"(p[2]), "r"(p[3]));
    asm volatile("griddepcontrol.wait;\n griddepcontrol.launch_dependents;");
    asm volatile("{ .reg .pred e; elect.sync _|e, 0xffffffff; selp.u32 %0, 1, 0, e; }" : "=r"(p[11]));
#endif
}
#endif
