/* Modules, libraries, functions, the linker, occupancy: what is loaded, what is refused and why. */
#include "answers.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char plain[] = HEAD ".visible .global .align 4 .u32 gv = 7;\n"
                                 ".global .align 4 .u32 hidden = 8;\n"
                                 ".visible .const .align 4 .b8 cv[100];\n"
                                 ".visible .entry k_plain(.param .u64 a, .param .u32 b) { ret; }\n"
                                 ".visible .entry k_none() { ret; }\n"
                                 ".visible .entry k_static()\n{\n"
                                 "    .shared .align 4 .b8 s[4096];\n"
                                 "    .reg .u32 %r<2>;\n"
                                 "    mov.u32 %r1, 1;\n"
                                 "    st.shared.u32 [s], %r1;\n"
                                 "    ret;\n}\n"
                                 ".visible .entry k_max() .maxntid 128, 1, 1 { ret; }\n"
                                 ".visible .entry k_req() .reqntid 64, 1, 1 { ret; }\n"
                                 ".entry k_hidden() { ret; }\n";
static const char too_new[] =
    ".version 8.7\n.target sm_120\n.address_size 64\n.visible .entry k() { ret; }\n";
static const char bad_version[] =
    ".version 99.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";
static const char bad_instruction[] =
    HEAD ".visible .entry k()\n{\n    bogus.u32 %r1;\n    ret;\n}\n";
static const char bad_register[] =
    HEAD ".visible .entry k()\n{\n    mov.u32 %r1, 1;\n    ret;\n}\n";
static const char unresolved[] =
    HEAD ".extern .func foo();\n.visible .entry k()\n{\n    call foo;\n    ret;\n}\n";
static const char defines_foo[] = HEAD ".visible .func foo() { ret; }\n";

static void
loading(void)
{
    CUmodule m;
    CUjit_option option;
    void *value;

    MUST(cuInit, 0);
    ASK(cuModuleLoadData, &m, plain);
    ask_context();
    ASK(cuModuleLoadData, &m, "garbage");
    ASK(cuModuleLoadData, &m, "");
    ASK(cuModuleLoadData, &m, NULL);
    ASK(cuModuleLoadData, NULL, plain);
    ASK(cuModuleLoad, &m, "/nonexistent");
    ASK(cuModuleLoad, &m, "/etc/passwd");
    ASK(cuModuleLoadData, &m, too_new);
    ASK(cuModuleLoadData, &m, bad_version);
    ASK(cuModuleLoadData, &m, bad_instruction);
    ASK(cuModuleLoadData, &m, bad_register);
    ASK(cuModuleLoadData, &m, unresolved);
    ASK(cuModuleLoadDataEx, &m, plain, 1, NULL, NULL);
    option = 77;
    value = NULL;
    ASK_AS("option 77", cuModuleLoadDataEx, &m, plain, 1, &option, &value);
    option = CU_JIT_OPTIMIZATION_LEVEL;
    value = (void *)9;
    ASK_AS("level 9", cuModuleLoadDataEx, &m, plain, 1, &option, &value);
    ASK(cuModuleLoadFatBinary, &m, NULL);
    ASK(cuModuleLoadData, &m, plain);
    ASK(cuModuleUnload, m);
    ASK(cuModuleUnload, NULL);
}

/* If a log names the mistake: the line, and whether it names the word. */
static void
logs(void)
{
    char errors[1024] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {errors, (void *)sizeof errors};
    CUmodule m;

    ask_context();
    ASK(cuModuleLoadDataEx, &m, bad_instruction, 2, options, values);
    SAY("names the line", strstr(errors, "line 6") != NULL);
    SAY("names the word", strstr(errors, "bogus") != NULL);
    SAY("the size is that of the text", (size_t)values[1] == strlen(errors) + 1);
    errors[0] = 0;
    values[1] = (void *)sizeof errors;
    ASK(cuModuleLoadDataEx, &m, bad_register, 2, options, values);
    SAY("names the line", strstr(errors, "line 6") != NULL);
    SAY("names the word", strstr(errors, "%r1") != NULL);
    errors[0] = 'x';
    values[1] = (void *)sizeof errors;
    ASK(cuModuleLoadDataEx, &m, plain, 2, options, values);
    SAY("empty", errors[0] == 0);
}

static void
say_function(const char *name, CUfunction f)
{
    static const int same[] = {0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14, 15};

    /* Local bytes, registers and architectures depend on the compiler. */
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        int v = -77;
        const CUresult r = CU(cuFuncGetAttribute)(&v, (CUfunction_attribute)same[i], f);

        printf("%s attribute %d: %s %d\n", name, same[i], ask_result(r), v);
    }
}

static void
functions(void)
{
    CUmodule m;
    CUmodule of;
    CUfunction f;
    CUdeviceptr d;
    const char *name = "";
    size_t size = 0;
    size_t offset = 0;
    unsigned count = 0;
    int v;

    ask_context();
    MUST(cuModuleLoadData, &m, plain);
    ASK(cuModuleGetFunction, &f, m, "k_hidden");
    ASK(cuModuleGetFunction, &f, m, "nope");
    ASK(cuModuleGetFunction, &f, m, "");
    ASK(cuModuleGetFunction, &f, m, NULL);
    ASK(cuModuleGetFunction, NULL, m, "k_none");
    ASK(cuModuleGetFunction, &f, NULL, "k_none");
    ASK(cuModuleGetFunctionCount, &count, m);
    SAY("functions", count);
    ASK(cuModuleGetGlobal_v2, &d, &size, m, "gv");
    SAY("size", size);
    ASK(cuModuleGetGlobal_v2, &d, &size, m, "hidden");
    ASK(cuModuleGetGlobal_v2, &d, &size, m, "cv");
    SAY("size", size);
    ASK(cuModuleGetGlobal_v2, &d, NULL, m, "gv");
    ASK(cuModuleGetGlobal_v2, NULL, NULL, m, "gv");
    ASK(cuModuleGetGlobal_v2, &d, &size, m, "nope");
    MUST(cuModuleGetGlobal_v2, &d, &size, m, "gv");
    MUST(cuMemcpyDtoH_v2, &v, d, 4);
    SAY("gv", v);
    MUST(cuModuleGetFunction, &f, m, "k_none");
    say_function("k_none", f);
    MUST(cuModuleGetFunction, &f, m, "k_static");
    say_function("k_static", f);
    MUST(cuModuleGetFunction, &f, m, "k_max");
    say_function("k_max", f);
    MUST(cuModuleGetFunction, &f, m, "k_req");
    say_function("k_req", f);
    MUST(cuModuleGetFunction, &f, m, "k_plain");
    ASK(cuFuncGetParamInfo, f, 0, &offset, &size);
    printf("parameter: %zu %zu\n", offset, size);
    ASK(cuFuncGetParamInfo, f, 1, &offset, &size);
    printf("parameter: %zu %zu\n", offset, size);
    ASK(cuFuncGetParamInfo, f, 2, &offset, &size);
    ASK(cuFuncGetName, &name, f);
    printf("name: %s\n", name);
    ASK(cuFuncGetModule, &of, f);
    SAY("its module", of == m);
    ASK(cuFuncGetAttribute, NULL, 0, f);
    ASK(cuFuncGetAttribute, &v, 99, f);
    ASK(cuFuncGetAttribute, &v, 0, NULL);
}

static void
settings(void)
{
    CUfunction f;
    int v;

    ask_context();
    f = ask_kernel(plain, "k_static");
    ASK(cuFuncSetAttribute, f, 8, 232448);
    ASK(cuFuncSetAttribute, f, 8, 228352);
    ASK(cuFuncSetAttribute, f, 8, 228353);
    ASK(cuFuncSetAttribute, f, 8, -1);
    ASK(cuFuncSetAttribute, f, 9, 101);
    ASK(cuFuncSetAttribute, f, 9, -2);
    ASK(cuFuncSetAttribute, f, 9, 50);
    ASK(cuFuncSetAttribute, f, 0, 1);
    ASK(cuFuncSetAttribute, f, 10, 1);
    ASK(cuFuncSetAttribute, f, 99, 0);
    ASK(cuFuncSetCacheConfig, f, 9);
    ASK(cuFuncSetCacheConfig, f, CU_FUNC_CACHE_PREFER_L1);
    ASK(cuFuncGetAttribute, &v, 8, f);
    SAY("most dynamic shared memory", v);
    ASK(cuFuncGetAttribute, &v, 9, f);
    SAY("carve-out", v);
}

static void
occupancy(void)
{
    static const char *const names[] = {"k_none", "k_static", "k_max", "k_req"};
    CUmodule m;
    CUfunction f[4];
    int grid;
    int block;
    int v;
    size_t size;

    ask_context();
    MUST(cuModuleLoadData, &m, plain);
    for (int i = 0; i < 4; i++) {
        MUST(cuModuleGetFunction, &f[i], m, names[i]);
        for (int threads = 32; threads <= 1024; threads *= 2) {
            v = -1;
            const CUresult r =
                CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&v, f[i], threads, 0);

            printf("%s, %d threads: %s %d\n", names[i], threads, ask_result(r), v);
        }
        grid = block = -1;
        ASK_AS(names[i], cuOccupancyMaxPotentialBlockSize, &grid, &block, f[i], NULL, 0, 0);
        printf("best: %d of %d\n", grid, block);
    }
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &v, f[0], 128, 20000);
    SAY("blocks", v);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &v, f[0], 128, 1 << 20);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &v, f[0], 1025, 0);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &v, f[0], 0, 0);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &v, f[0], -1, 0);
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, NULL, f[0], 32, 0);
    ASK(cuOccupancyMaxPotentialBlockSize, &grid, &block, f[0], NULL, 0, 200);
    printf("best: %d of %d\n", grid, block);
    for (int blocks = 1; blocks <= 32; blocks *= 4) {
        size = 77;
        const CUresult r = CU(cuOccupancyAvailableDynamicSMemPerBlock)(&size, f[1], blocks, 128);

        printf("shared memory for %d blocks: %s %zu\n", blocks, ask_result(r), size);
    }
}

static void
libraries(void)
{
    CUlibrary l;
    CUkernel k;
    CUkernel again;
    CUmodule m;
    CUfunction f;
    CUdeviceptr d;
    size_t size;
    unsigned count = 0;
    int v;

    ask_context();
    ASK(cuLibraryLoadData, &l, bad_instruction, NULL, NULL, 0, NULL, NULL, 0);
    ASK(cuLibraryLoadData, &l, "garbage", NULL, NULL, 0, NULL, NULL, 0);
    ASK(cuLibraryLoadData, &l, NULL, NULL, NULL, 0, NULL, NULL, 0);
    ASK(cuLibraryLoadData, &l, plain, NULL, NULL, 0, NULL, NULL, 0);
    ASK(cuLibraryGetKernel, &k, l, "nope");
    ASK(cuLibraryGetKernel, &k, l, "k_none");
    ASK(cuLibraryGetKernel, &again, l, "k_none");
    SAY("the same", k == again);
    ASK(cuLibraryGetKernelCount, &count, l);
    SAY("kernels", count);
    ASK(cuKernelGetFunction, &f, k);
    ASK(cuLaunchKernel, (CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    ASK(cuFuncGetAttribute, &v, 0, (CUfunction)k);
    ASK(cuLibraryGetGlobal, &d, &size, l, "gv");
    ASK(cuLibraryGetGlobal, &d, &size, l, "hidden");
    ASK(cuLibraryGetManaged, &d, &size, l, "gv");
    ASK(cuLibraryGetModule, &m, l);
    ASK(cuModuleUnload, m);
    ASK(cuKernelSetAttribute, 8, 60000, k, 0);
    ASK(cuFuncGetAttribute, &v, 8, f);
    SAY("of the function", v);
    ASK(cuKernelGetAttribute, &v, 8, k, 0);
    SAY("of the kernel", v);
    ASK(cuKernelSetAttribute, 8, 60000, k, 5);
    ASK(cuCtxSynchronize);
    ASK(cuLibraryUnload, l);
    ASK(cuLibraryUnload, NULL);
}

static void
linking(void)
{
    CUlinkState l;
    CUmodule m;
    CUfunction f;
    void *image;
    size_t size;

    ask_context();
    ASK(cuLinkCreate_v2, 0, NULL, NULL, &l);
    ASK(cuLinkAddData_v2, l, CU_JIT_INPUT_PTX, (void *)bad_instruction, sizeof bad_instruction, "a",
        0, NULL, NULL);
    ASK(cuLinkDestroy, l);
    ASK(cuLinkCreate_v2, 0, NULL, NULL, &l);
    ASK(cuLinkAddData_v2, l, CU_JIT_INPUT_PTX, (void *)unresolved, sizeof unresolved, "a", 0, NULL,
        NULL);
    ASK(cuLinkComplete, l, &image, &size);
    ASK(cuLinkDestroy, l);
    ASK(cuLinkCreate_v2, 0, NULL, NULL, &l);
    ASK(cuLinkAddData_v2, l, CU_JIT_INPUT_PTX, (void *)unresolved, sizeof unresolved, "a", 0, NULL,
        NULL);
    ASK(cuLinkAddData_v2, l, CU_JIT_INPUT_PTX, (void *)defines_foo, sizeof defines_foo, "b", 0,
        NULL, NULL);
    ASK(cuLinkComplete, l, &image, &size);
    ASK(cuModuleLoadData, &m, image);
    ASK(cuModuleGetFunction, &f, m, "k");
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    ASK(cuCtxSynchronize);
    ASK(cuLinkDestroy, l);
}

ASK_MAIN({"loading", loading}, {"logs", logs}, {"functions", functions}, {"settings", settings},
         {"occupancy", occupancy}, {"libraries", libraries}, {"linking", linking})
