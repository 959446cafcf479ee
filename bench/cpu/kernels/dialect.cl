/* What lets one kernel source be CUDA and OpenCL C. Kernels use these words and plain C. */
#ifdef __CUDACC__

#include <cuda_fp16.h>

typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short half_bits;

#define KERNEL(name) extern "C" __global__ void name
#define DEVICE static __device__ __forceinline__
#define TABLE static __device__ __constant__ const
#define GLOBAL
#define SHARED __shared__
#define SHARED_POINTER
#define BARRIER() __syncthreads()

#define LOCAL_X ((int)threadIdx.x)
#define LOCAL_Y ((int)threadIdx.y)
#define SIZE_X ((int)blockDim.x)
#define SIZE_Y ((int)blockDim.y)
#define GROUP_X ((int)blockIdx.x)
#define GROUP_Y ((int)blockIdx.y)
#define GROUP_Z ((int)blockIdx.z)
#define GROUPS_X ((int)gridDim.x)

#define FMA fmaf
#define FMA64 fma
#define EXP expf
#define LOG logf
#define SQRT sqrtf
#define SQRT64 sqrt
#define RSQRT rsqrtf
#define FABS fabsf
#define FABS64 fabs
#define FMAX fmaxf
#define FMAX64 fmax
#define MULHI(a, b) __umulhi(a, b)
#define POPCOUNT(a) __popc(a)
#define ATOMIC_ADD(p, v) atomicAdd(p, v)
#define FLOAT4(a, b, c, d) make_float4(a, b, c, d)

/* Adds v over the 32 threads of a warp; all of them get the sum. OpenCL needs memory for it. */
#define WARP_PAD(name, size)
#define WARP_SUM(v, pad)                              \
    do {                                              \
        for (int s_ = 16; s_ > 0; s_ >>= 1)           \
            v += __shfl_xor_sync(0xffffffffu, v, s_); \
    } while (0)

#else

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

typedef half half_bits; /* only for vload_half and vstore_half */

#define KERNEL(name) __kernel void name
#define DEVICE static inline
#define TABLE __constant const
#define GLOBAL __global
#define SHARED __local
#define SHARED_POINTER __local
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)

#define LOCAL_X ((int)get_local_id(0))
#define LOCAL_Y ((int)get_local_id(1))
#define SIZE_X ((int)get_local_size(0))
#define SIZE_Y ((int)get_local_size(1))
#define GROUP_X ((int)get_group_id(0))
#define GROUP_Y ((int)get_group_id(1))
#define GROUP_Z ((int)get_group_id(2))
#define GROUPS_X ((int)get_num_groups(0))

#define FMA fma
#define FMA64 fma
#define EXP exp
#define LOG log
#define SQRT sqrt
#define SQRT64 sqrt
#define RSQRT rsqrt
#define FABS fabs
#define FABS64 fabs
#define FMAX fmax
#define FMAX64 fmax
#define MULHI(a, b) mul_hi(a, b)
#define POPCOUNT(a) popcount(a)
#define ATOMIC_ADD(p, v) atomic_add(p, v)
#define FLOAT4(a, b, c, d) ((float4)(a, b, c, d))

#define WARP_PAD(name, size) __local float name[size]
#define WARP_SUM(v, pad)                    \
    do {                                    \
        for (int s_ = 16; s_ > 0; s_ >>= 1) { \
            pad[LOCAL_X] = v;               \
            BARRIER();                      \
            v += pad[LOCAL_X ^ s_];         \
            BARRIER();                      \
        }                                   \
    } while (0)

#endif

#define GLOBAL_X (GROUP_X * SIZE_X + LOCAL_X)
#define GLOBAL_Y (GROUP_Y * SIZE_Y + LOCAL_Y)
