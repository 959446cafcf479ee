/* Modules, libraries, functions and their launches on a remote GPU.
 *
 *     remote_modules [no_memory]
 *
 * `no_memory`: the server's GPU does nothing, so that only what the client knows can be checked.
 */
#include "conformance/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define MANY 200       /* more kernels than are described when a library is opened */
#define LARGEST 32764u /* bytes of parameters */
#define SHARED 65536u  /* bytes: more than a block gets without asking */

#define HEAD ".version 8.1\n.target sm_70\n.address_size 64\n"

static bool no_memory;
static CUcontext primary;
static CUdeviceptr word;

static uint32_t
read_word(void)
{
    uint32_t value = 0;

    OK(CU(cuMemcpyDtoH_v2)(&value, word, sizeof value));
    return value;
}

static void
expect_value(uint32_t value, const char *what)
{
    const uint32_t got = read_word();

    CHECK(no_memory || got == value, "%s: %u instead of %u", what, got, value);
}

static void
launch_kernel(CUfunction f, unsigned shared)
{
    void *params[] = {&word};

    OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, shared, NULL, params, NULL));
}

/* ---- many kernels ---------------------------------------------------------------------------- */

/* Kernel i writes i + 1000, and says that it has at most 64 + i threads per block. */
static char *
many_kernels(void)
{
    const size_t room = MANY * 256 + 256;
    char *text = malloc(room);

    CHECK(text, "no memory for the test");

    size_t at = (size_t)snprintf(text, room, HEAD);

    for (int i = 0; i < MANY; i++)
        at += (size_t)snprintf(text + at, room - at,
                               ".visible .entry k%d(.param .u64 p) .maxntid %d, 1, 1\n{\n"
                               ".reg .b64 %%d<2>; ld.param.u64 %%d1, [p];\n"
                               "st.global.u32 [%%d1], %d;\nret;\n}\n",
                               i, 64 + i, i + 1000);
    return text;
}

static void
a_library_of_many_kernels(void)
{
    char *text = many_kernels();
    CUkernel kernels[MANY], k;
    CUlibrary l, of;
    CUfunction f;
    const char *name;
    unsigned n = 0;
    int value;

    OK(CU(cuLibraryLoadData)(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    free(text);
    OK(CU(cuLibraryGetKernelCount)(&n, l));
    CHECK(n == MANY, "%u kernels", n);
    OK(CU(cuLibraryEnumerateKernels)(kernels, MANY, l));
    for (int i = 0; i < MANY; i += 37) {
        char wanted[16];

        snprintf(wanted, sizeof wanted, "k%d", i);
        OK(CU(cuLibraryGetKernel)(&k, l, wanted));
        OK(CU(cuKernelGetName)(&name, k));
        CHECK(strcmp(name, wanted) == 0, "%s is not %s", name, wanted);
        OK(CU(cuKernelGetLibrary)(&of, k));
        CHECK(of == l, "another library");
        OK(CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0));
        CHECK(value == 64 + i, "%s: %d threads", name, value);
        OK(CU(cuKernelGetFunction)(&f, k));
        OK(CU(cuFuncGetName)(&name, f));
        CHECK(strcmp(name, wanted) == 0, "%s is not %s", name, wanted);
        launch_kernel(i % 2 ? f : (CUfunction)k, 0);
        expect_value((uint32_t)i + 1000, wanted);
    }
    /* while work is pending */
    launch_kernel((CUfunction)kernels[5], 0);
    OK(CU(cuLibraryUnload)(l));
    OK(CU(cuCtxSynchronize)());
    CHECK_IS(CU(cuKernelGetFunction)(&f, k), CUDA_ERROR_INVALID_HANDLE);
}

static void
a_module_of_many_kernels(void)
{
    char *text = many_kernels();
    CUfunction functions[MANY];
    CUmodule m, of;
    const char *name;
    unsigned n = 0;

    OK(CU(cuModuleLoadData)(&m, text));
    free(text);
    OK(CU(cuModuleGetFunctionCount)(&n, m));
    CHECK(n == MANY, "%u functions", n);
    OK(CU(cuModuleEnumerateFunctions)(functions, MANY, m));
    for (int i = 0; i < MANY; i += 61) {
        OK(CU(cuFuncGetName)(&name, functions[i]));
        OK(CU(cuFuncGetModule)(&of, functions[i]));
        CHECK(of == m, "another module");
        launch_kernel(functions[i], 0);
        expect_value((uint32_t)strtoul(name + 1, NULL, 10) + 1000, name);
    }
    for (int i = 0; i < 100; i++)
        launch_kernel(functions[3], 0);
    OK(CU(cuModuleUnload)(m)); /* waits */
    CHECK_IS(CU(cuModuleGetFunction)(&functions[0], m, "k1"), CUDA_ERROR_INVALID_HANDLE);
}

/* ---- parameters and settings ----------------------------------------------------------------- */

static const char settings_text[] =
    HEAD ".extern .shared .align 4 .b32 room[];\n"
         ".visible .entry large(.param .u64 p, .param .align 4 .b8 rest[32756])\n{\n"
         ".reg .b64 %d<2>; .reg .b32 %r<2>; ld.param.u64 %d1, [p];\n"
         "ld.param.u32 %r1, [rest+32752];\nst.global.u32 [%d1], %r1;\nret;\n}\n"
         ".visible .entry shared(.param .u64 p)\n{\n"
         ".reg .b64 %d<2>; .reg .b32 %r<3>; ld.param.u64 %d1, [p];\n"
         "mov.u32 %r1, room;\nst.shared.u32 [%r1+65532], 77;\nld.shared.u32 %r2, [%r1+65532];\n"
         "st.global.u32 [%d1], %r2;\nret;\n}\n";

static void
the_most_parameters(void)
{
    unsigned char rest[LARGEST - 8] = {0};
    const uint32_t last = 0x12345678;
    size_t offset, size;
    CUmodule m;
    CUfunction f;
    void *params[] = {&word, rest};

    memcpy(rest + sizeof rest - 4, &last, 4);
    OK(CU(cuModuleLoadData)(&m, settings_text));
    OK(CU(cuModuleGetFunction)(&f, m, "large"));
    OK(CU(cuFuncGetParamInfo)(f, 1, &offset, &size));
    CHECK(offset == 8 && size == sizeof rest, "a parameter of %zu bytes at %zu", size, offset);
    OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    expect_value(last, "the last parameter");
    OK(CU(cuModuleUnload)(m));
}

static void
settings_before_the_first_launch(void)
{
    CUlibrary l;
    CUkernel k;
    CUmodule m;
    CUfunction f;
    int value;

    OK(CU(cuLibraryLoadData)(&l, settings_text, NULL, NULL, 0, NULL, NULL, 0));
    OK(CU(cuLibraryGetKernel)(&k, l, "shared"));
    OK(CU(cuKernelSetAttribute)(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, SHARED, k, 0));
    OK(CU(cuKernelSetCacheConfig)(k, CU_FUNC_CACHE_PREFER_SHARED, 0));
    launch_kernel((CUfunction)k, SHARED);
    expect_value(77, "shared memory of a kernel");
    OK(CU(cuLibraryUnload)(l));

    OK(CU(cuMemsetD32_v2)(word, 0, 1));
    OK(CU(cuModuleLoadData)(&m, settings_text));
    OK(CU(cuModuleGetFunction)(&f, m, "shared"));
    OK(CU(cuFuncSetAttribute)(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, SHARED));
    OK(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    CHECK(value == SHARED, "%d bytes", value);
    OK(CU(cuFuncSetCacheConfig)(f, CU_FUNC_CACHE_PREFER_L1));
    OK(CU(cuFuncSetSharedMemConfig)(f, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
    launch_kernel(f, SHARED);
    expect_value(77, "shared memory of a function");
    OK(CU(cuModuleUnload)(m));
}

static void
options_of_the_compiler(void)
{
    CUjit_option options[] = {CU_JIT_MAX_REGISTERS, CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_WALL_TIME,
                              CU_JIT_CACHE_MODE, CU_JIT_GENERATE_LINE_INFO};
    void *values[] = {(void *)32, (void *)2, NULL, (void *)CU_JIT_CACHE_OPTION_CA, (void *)1};
    CUmodule m;
    CUfunction f;
    float ms;

    OK(CU(cuModuleLoadDataEx)(&m, settings_text, 5, options, values));
    memcpy(&ms, &values[2], sizeof ms);
    CHECK(ms > 0 && ms < 60000, "compiled in %f ms", (double)ms);
    OK(CU(cuModuleGetFunction)(&f, m, "large"));
    OK(CU(cuModuleUnload)(m));
}

/* ---- variables ------------------------------------------------------------------------------- */

static const char variables_text[] =
    HEAD ".visible .global .align 4 .u32 counter = 5;\n.visible .const .align 4 .u32 step = 3;\n"
         ".visible .entry count(.param .u64 p)\n{\n"
         ".reg .b64 %d<2>; .reg .b32 %r<3>; ld.param.u64 %d1, [p];\n"
         "ld.global.u32 %r1, [counter];\nld.const.u32 %r2, [step];\nadd.u32 %r1, %r1, %r2;\n"
         "st.global.u32 [counter], %r1;\nst.global.u32 [%d1], %r1;\nret;\n}\n";

static void
variables(void)
{
    uint32_t value = 0;
    CUdeviceptr counter, step;
    size_t size;
    CUmodule m;
    CUfunction f;

    OK(CU(cuModuleLoadData)(&m, variables_text));
    OK(CU(cuModuleGetFunction)(&f, m, "count"));
    OK(CU(cuModuleGetGlobal_v2)(&counter, &size, m, "counter"));
    CHECK(size == 4, "%zu bytes", size);
    OK(CU(cuModuleGetGlobal_v2)(&step, &size, m, "step"));
    launch_kernel(f, 0);
    expect_value(8, "first values");
    value = 10;
    OK(CU(cuMemcpyHtoD_v2)(step, &value, 4));
    OK(CU(cuMemsetD32_v2)(counter, 100, 1));
    launch_kernel(f, 0);
    expect_value(110, "values from the host");
    OK(CU(cuMemcpyDtoH_v2)(&value, counter, 4));
    CHECK(value == 110, "the variable is %u", value);
    OK(CU(cuModuleUnload)(m));
}

/* Each context has variables of its own. */
static void
one_library_in_two_contexts(void)
{
    CUdeviceptr here, there, out;
    CUcontext second;
    CUlibrary l;
    CUkernel k;
    uint32_t value;
    size_t size;
    void *params[] = {&out};

    OK(CU(cuLibraryLoadData)(&l, variables_text, NULL, NULL, 0, NULL, NULL, 0));
    OK(CU(cuLibraryGetKernel)(&k, l, "count"));
    launch_kernel((CUfunction)k, 0);
    launch_kernel((CUfunction)k, 0);
    expect_value(11, "twice here");
    OK(CU(cuLibraryGetGlobal)(&here, &size, l, "counter"));
    OK(CU(cuCtxCreate_v2)(&second, 0, 0));
    OK(CU(cuMemAlloc_v2)(&out, 4));
    OK(CU(cuLaunchKernel)((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(CU(cuMemcpyDtoH_v2)(&value, out, 4));
    CHECK(value == 8, "once there: %u", value);
    OK(CU(cuLibraryGetGlobal)(&there, &size, l, "counter"));
    CHECK(here != there, "one variable for both");
    OK(CU(cuCtxDestroy_v2)(second));
    OK(CU(cuCtxSetCurrent)(primary));
    launch_kernel((CUfunction)k, 0);
    expect_value(14, "here again");
    OK(CU(cuLibraryUnload)(l));
}

/* Kernels and copies can use a managed variable. */
static void
a_managed_variable(void)
{
    static const char text[] =
        HEAD ".visible .global .attribute(.managed) .align 4 .u32 both = 5;\n"
             ".visible .entry more(.param .u64 p)\n{\n"
             ".reg .b64 %d<2>; .reg .b32 %r<2>; ld.param.u64 %d1, [p];\n"
             "ld.global.u32 %r1, [both];\nadd.u32 %r1, %r1, 10;\nst.global.u32 [both], %r1;\n"
             "st.global.u32 [%d1], %r1;\nret;\n}\n";
    CUdeviceptr at, again;
    uint32_t value = 0;
    size_t size = 0;
    CUlibrary l;
    CUkernel k;

    OK(CU(cuLibraryLoadData)(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    OK(CU(cuLibraryGetKernel)(&k, l, "more"));
    CHECK_IS(CU(cuLibraryGetManaged)(&at, &size, l, "neither"), CUDA_ERROR_NOT_FOUND);
    OK(CU(cuLibraryGetManaged)(&at, &size, l, "both"));
    OK(CU(cuLibraryGetManaged)(&again, NULL, l, "both"));
    CHECK(size == 4 && at == again, "%zu bytes at two places", size);
    launch_kernel((CUfunction)k, 0);
    expect_value(15, "its first value");
    OK(CU(cuMemcpyDtoH_v2)(&value, at, 4));
    CHECK(value == 15, "the variable is %u", value);
    value = 100;
    OK(CU(cuMemcpyHtoD_v2)(at, &value, 4));
    launch_kernel((CUfunction)k, 0);
    expect_value(110, "a value from the host");
    OK(CU(cuLibraryUnload)(l));
}

/* Loading a module with text that cannot be compiled fails at once. */
static void
a_module_that_is_wrong(void)
{
    static const char text[] = HEAD ".visible .entry k()\n{\nmov.u32 %r1, 1;\nret;\n}\n";
    char log[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule m;

    CHECK_IS(CU(cuModuleLoadData)(&m, text), CUDA_ERROR_INVALID_PTX);
    CHECK_IS(CU(cuModuleLoadDataEx)(&m, text, 2, options, values), CUDA_ERROR_INVALID_PTX);
    CHECK(strstr(log, "%r1"), "the log says \"%s\"", log);
}

int
main(int argc, char **argv)
{
    CUdevice dev;

    no_memory = argc > 1 && strcmp(argv[1], "no_memory") == 0;
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&dev, 0));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary, dev));
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuMemAlloc_v2)(&word, 4));
    a_library_of_many_kernels();
    a_module_of_many_kernels();
    the_most_parameters();
    options_of_the_compiler();
    if (!no_memory) {
        settings_before_the_first_launch();
        variables();
        one_library_in_two_contexts();
        a_managed_variable();
        a_module_that_is_wrong();
    }
    return 0;
}
