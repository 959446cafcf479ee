/* An old program: its kernels are launched by cudaConfigureCall, cudaSetupArgument and cudaLaunch.
 * It adds two arrays, launches a kernel to compute the argument of another launch, and uses
 * variables of the device by their shadows. */
#include <string.h>

#include "old.h"

#define N 1000

static const char ptx[] = ".version 4.2\n"
                          ".target sm_20\n"
                          ".address_size 64\n"
                          ".visible .const .align 4 .f32 factor;\n"
                          ".visible .global .align 4 .u32 count;\n"
                          /* c[i] = factor * (a[i] + b[i]) for i < n */
                          ".visible .entry _Z3addPKfS0_Pfi(.param .u64 a, .param .u64 b,\n"
                          "    .param .u64 c, .param .u32 n)\n"
                          "{\n"
                          ".reg .pred %p<2>;\n"
                          ".reg .f32 %f<6>;\n"
                          ".reg .b32 %r<6>;\n"
                          ".reg .b64 %rd<8>;\n"
                          "ld.param.u64 %rd1, [a];\n"
                          "ld.param.u64 %rd2, [b];\n"
                          "ld.param.u64 %rd3, [c];\n"
                          "ld.param.u32 %r1, [n];\n"
                          "mov.u32 %r2, %ctaid.x;\n"
                          "mov.u32 %r3, %ntid.x;\n"
                          "mov.u32 %r4, %tid.x;\n"
                          "mad.lo.s32 %r5, %r2, %r3, %r4;\n"
                          "setp.ge.s32 %p1, %r5, %r1;\n"
                          "@%p1 bra done;\n"
                          "mul.wide.s32 %rd4, %r5, 4;\n"
                          "add.s64 %rd5, %rd1, %rd4;\n"
                          "add.s64 %rd6, %rd2, %rd4;\n"
                          "add.s64 %rd7, %rd3, %rd4;\n"
                          "ld.global.f32 %f1, [%rd5];\n"
                          "ld.global.f32 %f2, [%rd6];\n"
                          "ld.const.f32 %f3, [factor];\n"
                          "add.f32 %f4, %f1, %f2;\n"
                          "mul.f32 %f5, %f4, %f3;\n"
                          "st.global.f32 [%rd7], %f5;\n"
                          "done: ret;\n"
                          "}\n"
                          /* count += by, as a char, a double and an int: gaps between them */
                          ".visible .entry _Z5countcdi(.param .u8 a, .param .f64 b,\n"
                          "    .param .u32 c)\n"
                          "{\n"
                          ".reg .f64 %d<2>;\n"
                          ".reg .b32 %r<7>;\n"
                          "ld.param.u8 %r1, [a];\n"
                          "ld.param.f64 %d1, [b];\n"
                          "ld.param.u32 %r3, [c];\n"
                          "cvt.rzi.s32.f64 %r2, %d1;\n"
                          "add.s32 %r4, %r1, %r2;\n"
                          "add.s32 %r4, %r4, %r3;\n"
                          "atom.global.add.u32 %r5, [count], %r4;\n"
                          "ret;\n"
                          "}\n"
                          ".visible .entry _Z7nothingv()\n"
                          "{\n"
                          "ret;\n"
                          "}\n";

static float factor;
static unsigned count;

/* ---- stubs ----------------------------------------------------------------------------------- */

static void
add(const float *a, const float *b, float *c, int n)
{
    if (OLD_ARGUMENT(a, 0) || OLD_ARGUMENT(b, 8) || OLD_ARGUMENT(c, 16) || OLD_ARGUMENT(n, 24))
        return;
    (void)cudaLaunch((const void *)(uintptr_t)add);
}

static void
count_up(char a, double b, int c)
{
    if (OLD_ARGUMENT(a, 0) || OLD_ARGUMENT(b, 8) || OLD_ARGUMENT(c, 16))
        return;
    (void)cudaLaunch((const void *)(uintptr_t)count_up);
}

static void
nothing(void)
{
    (void)cudaLaunch((const void *)(uintptr_t)nothing);
}

static void
missing(void)
{
    (void)cudaLaunch((const void *)(uintptr_t)missing);
}

__attribute__((constructor)) static void
register_all(void)
{
    void **handle = old_register(ptx);

    OLD_KERNEL(handle, add, "_Z3addPKfS0_Pfi");
    OLD_KERNEL(handle, count_up, "_Z5countcdi");
    OLD_KERNEL(handle, nothing, "_Z7nothingv");
    OLD_KERNEL(handle, missing, "_Z7missingv");
    __cudaRegisterVar(handle, (char *)&factor, (char *)(uintptr_t) "factor", "factor", 0, 4, 1, 0);
    __cudaRegisterVar(handle, (char *)&count, (char *)(uintptr_t) "count", "count", 0, 4, 0, 0);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void
adds_arrays(void)
{
    static float a[N], b[N], c[N];
    const float by = 2;
    float *da, *db, *dc;

    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = (float)(2 * i);
    }
    OK(cudaMalloc((void **)&da, sizeof a));
    OK(cudaMalloc((void **)&db, sizeof b));
    OK(cudaMalloc((void **)&dc, sizeof c));
    OK(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice));
    OK(cudaMemcpyToSymbol(&factor, &by, sizeof by, 0, cudaMemcpyHostToDevice));
    OLD_CONFIGURE((N + 127) / 128, 128) ? (void)0 : add(da, db, dc, N);
    OK(cudaGetLastError());
    OK(cudaThreadSynchronize());
    OK(cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        EXPECT(c[i] == (float)(6 * i));
    OK(cudaFree(da));
    OK(cudaFree(db));
    OK(cudaFree(dc));
}

static unsigned
count_now(void)
{
    unsigned now;

    OK(cudaMemcpyFromSymbol(&now, &count, sizeof now, 0, cudaMemcpyDeviceToHost));
    return now;
}

/* The argument of a launch, which takes a launch. */
static int
count_then_tell(void)
{
    OLD_CONFIGURE(1, 1) ? (void)0 : count_up(1, 10.0, 100);
    OK(cudaGetLastError());
    return (int)count_now();
}

static void
launches_nest(void)
{
    OLD_CONFIGURE(2, 3) ? (void)0 : count_up(0, 0.5, count_then_tell());
    OK(cudaGetLastError());
    OK(cudaThreadSynchronize());
    EXPECT(count_now() == 111 + 6 * 111);
}

static void
mistakes_are_told(void)
{
    static const int unregistered;
    const int big = 0;

    EXPECT_ERROR(cudaErrorMissingConfiguration, cudaLaunch((const void *)(uintptr_t)nothing));
    EXPECT_ERROR(cudaErrorMissingConfiguration, cudaGetLastError());
    EXPECT_ERROR(cudaErrorMissingConfiguration, cudaSetupArgument(&big, 4, 0));
    OK(OLD_CONFIGURE(1, 1));
    EXPECT_ERROR(cudaErrorInvalidValue, cudaSetupArgument(&big, 4, 1 << 20));
    EXPECT_ERROR(cudaErrorInvalidValue, cudaSetupArgument(NULL, 4, 0));
    EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaLaunch(&unregistered));
    OK(OLD_CONFIGURE(1, 1));
    EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaLaunch(NULL));
    OK(OLD_CONFIGURE(1, 1));
    EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaLaunch(&factor));
    OK(OLD_CONFIGURE(1, 1) ? 1 : (missing(), 0));
    EXPECT_ERROR(cudaErrorInvalidDeviceFunction, cudaGetLastError());
    OK(OLD_CONFIGURE(1, 4096) ? 1 : (nothing(), 0));
    EXPECT_ERROR(cudaErrorInvalidConfiguration, cudaGetLastError());
    /* Every launch has ended, so there is none to be taken by this one. */
    EXPECT_ERROR(cudaErrorMissingConfiguration, cudaLaunch((const void *)(uintptr_t)nothing));
    (void)cudaGetLastError();
    EXPECT_ERROR(cudaErrorInvalidSymbol,
                 cudaMemcpyToSymbol(&unregistered, &big, 4, 0, cudaMemcpyHostToDevice));
    EXPECT(strcmp(cudaGetErrorName(cudaErrorInvalidSymbol), "cudaErrorInvalidSymbol") == 0);
    EXPECT(strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue") == 0);
    (void)cudaGetLastError();
}

/* The devices that are emulated do not offer it; what is wrong with a call is told before. */
static void
launches_on_several_devices(void)
{
    const void *stub = (const void *)(uintptr_t)nothing;
    struct cudaLaunchParams list[2] = {{stub, {1, 1, 1}, {1, 1, 1}, NULL, 0, NULL},
                                       {stub, {1, 1, 1}, {1, 1, 1}, NULL, 0, NULL}};

    EXPECT_ERROR(cudaErrorInvalidValue, cudaLaunchCooperativeKernelMultiDevice(NULL, 1, 0));
    EXPECT_ERROR(cudaErrorInvalidValue, cudaLaunchCooperativeKernelMultiDevice(list, 0, 0));
    EXPECT_ERROR(cudaErrorInvalidValue, cudaLaunchCooperativeKernelMultiDevice(list, 2, 0));
    list[0].blockDim.x = 4096;
    EXPECT_ERROR(cudaErrorInvalidConfiguration, cudaLaunchCooperativeKernelMultiDevice(list, 1, 0));
    list[0].func = &factor;
    EXPECT_ERROR(cudaErrorInvalidDeviceFunction,
                 cudaLaunchCooperativeKernelMultiDevice(list, 1, 0));
    (void)cudaGetLastError();
}

int
main(void)
{
    int version = 0;
    double d = 1.5;

    OK(cudaRuntimeGetVersion(&version));
    EXPECT(version / 100 == OLD_EDITION || version / 1000 == OLD_EDITION / 10);
    /* The first call that needs a context is a launch. */
    OK(OLD_CONFIGURE(1, 1) ? 1 : (nothing(), 0));
    OK(cudaGetLastError());
    adds_arrays();
    launches_nest();
    mistakes_are_told();
    launches_on_several_devices();
    OK(cudaSetDoubleForDevice(&d));
    EXPECT(d == 1.5);
    OK(cudaThreadExit());
    return 0;
}
