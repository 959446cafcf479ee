/* What old programs are made of: the declarations of their headers, and what compilers of that time
 * put around kernels. Written by hand, since today's compilers no longer do it so. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The edition of the runtime: 80, 102 or 110. */
#ifndef OLD_EDITION
#error "which edition?"
#endif

/* ---- headers --------------------------------------------------------------------------------- */

typedef struct {
    unsigned x, y, z;
} dim3;

typedef struct CUstream_st *cudaStream_t;
typedef struct cudaArray *cudaArray_t;

struct cudaChannelFormatDesc {
    int x, y, z, w, f;
};

enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat };

/* Errors had other numbers until CUDA 10.1. */
#if OLD_EDITION < 101
enum {
    cudaErrorMissingConfiguration = 1,
    cudaErrorInvalidDeviceFunction = 8,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidValue = 11,
    cudaErrorInvalidSymbol = 13,
    cudaErrorInvalidTexture = 18,
    cudaErrorInvalidTextureBinding = 19,
    cudaErrorInvalidSurface = 37,
};
#else
enum {
    cudaErrorInvalidValue = 1,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidSymbol = 13,
    cudaErrorInvalidTexture = 18,
    cudaErrorInvalidTextureBinding = 19,
    cudaErrorInvalidSurface = 37,
    cudaErrorMissingConfiguration = 52,
    cudaErrorInvalidDeviceFunction = 98,
};
#endif

int cudaMalloc(void **p, size_t size);
int cudaFree(void *p);
int cudaMemcpy(void *to, const void *from, size_t size, int kind);
int cudaMemset(void *p, int value, size_t size);
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, int kind);
int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, int kind);
int cudaThreadSynchronize(void);
int cudaThreadExit(void);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaRuntimeGetVersion(int *version);
const char *cudaGetErrorString(int error);
const char *cudaGetErrorName(int error);

int cudaConfigureCall(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
int cudaSetupArgument(const void *argument, size_t size, size_t offset);
int cudaLaunch(const void *function);
int cudaSetDoubleForDevice(double *d);

struct cudaLaunchParams {
    const void *func;
    dim3 gridDim, blockDim;
    void **args;
    size_t sharedMem;
    cudaStream_t stream;
};

int cudaLaunchCooperativeKernelMultiDevice(struct cudaLaunchParams *list, unsigned count,
                                           unsigned flags);

/* ---- what compilers emitted ------------------------------------------------------------------ */

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *stub, char *function, const char *name,
                            int limit, void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *shadow, char *address, const char *name, int ext,
                       int size, int constant, int global);

/* Registers the PTX of a program as its constructor did, and unregisters it at the exit. */
void **old_register(const char *ptx);

/* A kernel: its stub calls old_launch(). */
#define OLD_KERNEL(handle, stub, name)                                                         \
    __cudaRegisterFunction(handle, (const char *)(uintptr_t)(stub), (char *)(uintptr_t)(name), \
                           name, -1, NULL, NULL, NULL, NULL, NULL)

#define OLD_ARGUMENT(value, offset) cudaSetupArgument(&(value), sizeof(value), offset)

/* kernel<<<grid, block>>>, to be followed by the call of a stub. */
#define OLD_CONFIGURE(grid, block) \
    cudaConfigureCall((dim3){grid, 1, 1}, (dim3){block, 1, 1}, 0, NULL)

/* ---- checks ---------------------------------------------------------------------------------- */

#define EXPECT(what)                                                                       \
    do {                                                                                   \
        if (!(what)) {                                                                     \
            fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #what); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

#define EXPECT_ERROR(wanted, call)                                                               \
    do {                                                                                         \
        const int got_ = (call);                                                                 \
                                                                                                 \
        if (got_ != (wanted)) {                                                                  \
            fprintf(stderr, "%s:%d: %s gave %d (%s), not %d\n", __FILE__, __LINE__, #call, got_, \
                    cudaGetErrorName(got_), wanted);                                             \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

#define OK(call) EXPECT_ERROR(0, call)
