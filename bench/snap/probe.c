/* Facts about NVIDIA's driver on which snapshots rest: which addresses and object values are the
 * same in a second process that makes the same calls.
 *
 *   HED_LIBCUDA=/path/to/libcuda.so.1 probe
 *
 * Every child prints one line per fact; the lines of two children are compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "library.h"

#define TIB (UINT64_C(1) << 40)
#define WANT UINT64_C(0x200000000000)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .global .align 8 .u64 counter;\n"
                          ".visible .global .align 16 .b8 table[100000];\n"
                          ".visible .const .align 8 .u64 fixed;\n"
                          ".global .align 8 .u64 hidden;\n"
                          ".visible .entry touch() {\n.reg .u64 %a, %v;\n"
                          "mov.u64 %a, hidden; atom.global.add.u64 %v, [%a], 1; ret; }\n";

static void
say(const char *what, CUresult r, uint64_t value)
{
    printf("  %-34s %d %#llx\n", what, (int)r, (unsigned long long)value);
}

static void
probe_module(const char *label)
{
    static const char *const names[] = {"counter", "table", "fixed", "hidden"};
    CUmodule m;
    CUresult r = CU(cuModuleLoadData)(&m, ptx);

    for (int i = 0; i < 4; i++) {
        CUdeviceptr at = 0;
        size_t size = 0;
        char what[64];

        if (r == CUDA_SUCCESS)
            r = CU(cuModuleGetGlobal_v2)(&at, &size, m, names[i]);
        (void)snprintf(what, sizeof what, "%s.%s", label, names[i]);
        say(what, r, at);
        r = CUDA_SUCCESS;
    }
}

static void
probe_array(void)
{
    const CUDA_ARRAY3D_DESCRIPTOR_v2 d = {.Width = 64,
                                          .Height = 64,
                                          .Format = CU_AD_FORMAT_FLOAT,
                                          .NumChannels = 1,
                                          .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_RESOURCE_DESC_v1 res = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUDA_TEXTURE_DESC_v1 tex = {0};
    CUtexObject t = 0;
    CUsurfObject s = 0;
    CUarray a;

    MUST(CU(cuArray3DCreate_v2)(&a, &d));
    res.res.array.hArray = a;
    for (int i = 0; i < 2; i++) {
        CUresult r = CU(cuTexObjectCreate)(&t, &res, &tex, NULL);

        say(i ? "texture 2" : "texture 1", r, t);
        r = CU(cuSurfObjectCreate)(&s, &res);
        say(i ? "surface 2" : "surface 1", r, s);
    }
}

static void
probe_condition(CUcontext c)
{
    CUgraphConditionalHandle h = 0;
    CUgraph g;

    MUST(CU(cuGraphCreate)(&g, 0));
    for (int i = 0; i < 2; i++) {
        const CUresult r = CU(cuGraphConditionalHandleCreate)(&h, g, c, 0, 1);

        say(i ? "condition 2" : "condition 1", r, h);
    }
}

static int
probe_child(void)
{
    CUdeviceptr at = 0, plain = 0;
    CUcontext c;

    MUST(CU(cuInit)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&c, 0));
    MUST(CU(cuCtxSetCurrent)(c));

    const CUresult r = CU(cuMemAddressReserve)(&at, TIB, 0, WANT, 0);

    say("reserve 1 TiB", r, at);
    if (r == CUDA_SUCCESS && at != WANT)
        (void)CU(cuMemAddressFree)(at, TIB);
    at = 0;
    say("reserve 1 TiB, next", CU(cuMemAddressReserve)(&at, TIB, 0, WANT + TIB, 0), at);
    probe_module("first");
    say("cuMemAlloc", CU(cuMemAlloc_v2)(&plain, 1 << 20), plain);
    probe_module("second");
    probe_array();
    probe_condition(c);
    (void)fflush(stdout);
    return 0;
}

static void
run_child(const char *self, const char *label, bool exec, bool fixed)
{
    printf("%s\n", label);
    (void)fflush(stdout);

    const pid_t pid = fork();

    if (pid == 0) {
        if (fixed)
            (void)personality(ADDR_NO_RANDOMIZE);
        if (exec) {
            (void)execl(self, self, "child", (char *)NULL);
            _exit(127);
        }
        open_library();
        _exit(probe_child());
    }

    int status = 0;

    (void)waitpid(pid, &status, 0);
    if (status)
        printf("  status %#x\n", (unsigned)status);
    (void)fflush(stdout);
}

int
main(int argc, char **argv)
{
    if (argc > 1) {
        open_library();
        return probe_child();
    }
    for (int i = 0; i < 2; i++)
        run_child(argv[0], "exec", true, false);
    for (int i = 0; i < 2; i++)
        run_child(argv[0], "exec, addresses not random", true, true);
    for (int i = 0; i < 2; i++)
        run_child(argv[0], "fork of one parent", false, false);
    return 0;
}
