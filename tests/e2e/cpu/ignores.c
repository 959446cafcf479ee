/* A program that ignores every error and ends with 0, or with the number that it is given.
 *
 *     ignores kernel | pointer | unused | call | cuda | nothing | kernel-child | COMMAND STATUS
 *
 * kernel: launches a kernel that heddle cannot run. pointer: launches one that calls, through a
 * pointer, a function that heddle cannot run. unused: the same, with a pointer to another. call:
 * makes a call that heddle does not support. cuda: launches with a configuration that CUDA refuses,
 * too. kernel-child: as kernel, in a process of its own.
 */
#include "conformance/conf.h"

#include <string.h>
#include <sys/wait.h>

/* A kernel that calls one of the functions in the table. */
#define CALLER(name, offset)                            \
    ".visible .entry " name "()\n{\n.reg .b64 %d<2>;\n" \
    "ld.global.u64 %d1, [functions + " offset "];\n"    \
    "prototype: .callprototype _ ();\ncall %d1, prototype;\nret;\n}\n"

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func of_another_world();\n"
    ".visible .entry impossible()\n{\ncall of_another_world;\nret;\n}\n"
    ".visible .entry possible()\n{\nret;\n}\n"
    ".func bad()\n{\n.reg .b64 %d<3>;\nmov.u64 %d1, 0;\n"
    "multimem.ld_reduce.acquire.sys.global.min.u64 %d2, [%d1];\nret;\n}\n"
    ".func good()\n{\nret;\n}\n"
    ".global .u64 functions[2] = {bad, good};\n" CALLER("calls_bad", "0") CALLER("calls_good", "8");

static void
launch_named(const char *name, unsigned threads)
{
    CUcontext context;
    CUmodule module;
    CUfunction f;

    CU(cuInit)(0);
    CU(cuDevicePrimaryCtxRetain)(&context, 0);
    CU(cuCtxSetCurrent)(context);
    CHECK_IS(CU(cuModuleLoadData)(&module, text), CUDA_SUCCESS);
    CHECK_IS(CU(cuModuleGetFunction)(&f, module, name), CUDA_SUCCESS);
    (void)CU(cuLaunchKernel)(f, 1, 1, 1, threads, 1, 1, 0, NULL, NULL, NULL);
    (void)CU(cuCtxSynchronize)();
}

/* External memory is something that no soft backend has. */
static void
make_call(void)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1 about;
    CUexternalMemory memory;
    CUcontext context;

    memset(&about, 0, sizeof about);
    CU(cuInit)(0);
    CU(cuDevicePrimaryCtxRetain)(&context, 0);
    CU(cuCtxSetCurrent)(context);
    (void)CU(cuImportExternalMemory)(&memory, &about);
}

int
main(int argc, char **argv)
{
    CHECK(argc > 1,
          "ignores kernel | pointer | unused | call | cuda | nothing | kernel-child [STATUS]");
    if (strcmp(argv[1], "kernel") == 0)
        launch_named("impossible", 1);
    else if (strcmp(argv[1], "pointer") == 0)
        launch_named("calls_bad", 64);
    else if (strcmp(argv[1], "unused") == 0)
        launch_named("calls_good", 64);
    else if (strcmp(argv[1], "call") == 0)
        make_call();
    else if (strcmp(argv[1], "cuda") == 0)
        launch_named("possible", 4096);
    else if (strcmp(argv[1], "nothing") == 0)
        launch_named("possible", 1);
    else if (strcmp(argv[1], "kernel-child") == 0) {
        const pid_t pid = fork();

        if (pid == 0)
            execl(argv[0], argv[0], "kernel", (char *)NULL);
        CHECK(waitpid(pid, NULL, 0) == pid, "no child");
    }
    return argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
}
