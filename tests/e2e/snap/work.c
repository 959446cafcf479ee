/* A long computation with everything that a program can have on a device: plain, pool, physical,
 * managed and pinned memory, arrays, textures, variables of modules that the program never asks
 * for, streams, events, graphs, functions of the program. Whatever happens to its GPU meanwhile, it
 * prints the same number in the end.
 *
 *     snap_work ROUNDS [MIB] [MICROSECONDS | stdin] [PERCENT]
 *
 * It says "ready" when it begins. MIB: of memory that is idle, except for the PERCENT of it that
 * each round changes. MICROSECONDS: between two rounds; stdin: each round waits for a line, and
 * says "done". With HED_NAMELESS it never asks where a variable is, so it can go to any device.
 */
#include "conformance/conf.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define MIB ((size_t)1 << 20)
#define WORDS 65536u
#define BYTES (WORDS * sizeof(uint32_t))
#define SIDE 128u /* of the array, in words */

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .const .align 4 .u32 salt = 7;\n"
    ".visible .global .align 8 .u64 total;\n"
    ".global .align 4 .u32 hidden[1024];\n"
    /* p[i] = p[i] * 1664525 + k + i */
    ".visible .entry mix(.param .u64 p, .param .u32 n, .param .u32 k)\n{\n"
    ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; ld.param.u32 %r1, [k];\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r2, %r2, %r3, %r4; setp.ge.u32 %p, %r2, %r0; @%p ret;\n"
    "mul.wide.u32 %d1, %r2, 4; add.u64 %d0, %d0, %d1; ld.global.u32 %r5, [%d0];\n"
    "mad.lo.u32 %r5, %r5, 1664525, %r1; add.u32 %r5, %r5, %r2; st.global.u32 [%d0], %r5; ret;\n}\n"
    /* total += p[i] * (i + salt); hidden[i % 1024] += p[i] */
    ".visible .entry fold(.param .u64 p, .param .u32 n)\n{\n"
    ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>;\n"
    "ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n];\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r2, %r2, %r3, %r4; setp.ge.u32 %p, %r2, %r0; @%p ret;\n"
    "mul.wide.u32 %d1, %r2, 4; add.u64 %d0, %d0, %d1; ld.global.u32 %r5, [%d0];\n"
    "ld.const.u32 %r6, [salt]; add.u32 %r6, %r6, %r2; mul.wide.u32 %d2, %r5, %r6;\n"
    "mov.u64 %d3, total; atom.global.add.u64 %d2, [%d3], %d2;\n"
    "and.b32 %r7, %r2, 1023; mul.wide.u32 %d4, %r7, 4; mov.u64 %d5, hidden;\n"
    "add.u64 %d5, %d5, %d4; atom.global.add.u32 %r7, [%d5], %r5; ret;\n}\n"
    /* out[0] = total; out[1 + i] = hidden[i] */
    ".visible .entry give(.param .u64 out)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %d<6>;\n"
    "ld.param.u64 %d0, [out]; mov.u64 %d1, total; ld.global.u64 %d2, [%d1];\n"
    "st.global.u64 [%d0], %d2; mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 4;\n"
    "mov.u64 %d4, hidden; add.u64 %d4, %d4, %d3; ld.global.u32 %r1, [%d4];\n"
    "mul.wide.u32 %d3, %r0, 8; add.u64 %d0, %d0, %d3; cvt.u64.u32 %d5, %r1;\n"
    "st.global.u64 [%d0+8], %d5; ret;\n}\n"
    /* out[i] += tex2D(t, x, y), one thread for each element */
    ".visible .entry look(.param .u64 out, .param .u64 t)\n{\n"
    ".reg .b32 %r<12>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d0, [out]; ld.param.u64 %d1, [t];\n"
    "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x;\n"
    "tex.2d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%d1, {%r1, %r0}];\n"
    "mad.lo.u32 %r3, %r0, %r2, %r1; mul.wide.u32 %d2, %r3, 4; add.u64 %d0, %d0, %d2;\n"
    "ld.global.u32 %r8, [%d0]; add.u32 %r8, %r8, %r4; st.global.u32 [%d0], %r8; ret;\n}\n";

static CUcontext primary;
static CUfunction mix, fold, give, look;
static CUdeviceptr plain, other, physical, managed, idle;
static size_t idle_bytes;
static uint32_t *pinned;
static CUstream first, second;
static CUevent event;
static CUgraphExec graph;
static CUarray array;
static CUtexObject texture;
static uint64_t called; /* by functions on streams */

static void
run(CUfunction f, unsigned blocks, unsigned threads, CUstream s, void **params)
{
    OK(CU(cuLaunchKernel)(f, blocks, 1, 1, threads, 1, 1, 0, s, params, NULL));
}

static void
run_mix(CUdeviceptr p, uint32_t n, uint32_t k, CUstream s)
{
    void *params[] = {&p, &n, &k};

    run(mix, (n + 255) / 256, 256, s, params);
}

static void
run_fold(CUdeviceptr p, uint32_t n, CUstream s)
{
    void *params[] = {&p, &n};

    run(fold, (n + 255) / 256, 256, s, params);
}

/* All of the memory that only lies there, which may be more than one launch reaches. */
static void
run_idle(size_t bytes, bool folds)
{
    for (size_t at = 0; at < bytes; at += 1024 * MIB) {
        const size_t left = bytes - at < 1024 * MIB ? bytes - at : 1024 * MIB;

        if (folds)
            run_fold(idle + at, (uint32_t)(left / 4), NULL);
        else
            run_mix(idle + at, (uint32_t)(left / 4), (uint32_t)(at / MIB), NULL);
    }
}

/* ---- what there is --------------------------------------------------------------------------- */

static void
make_physical(void)
{
    const CUmemAllocationProp_v1 prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc_v1 access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                       .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h;

    OK(CU(cuMemCreate)(&h, 2 * MIB, &prop, 0));
    OK(CU(cuMemAddressReserve)(&physical, 2 * MIB, 0, 0, 0));
    OK(CU(cuMemMap)(physical, 2 * MIB, 0, h, 0));
    OK(CU(cuMemSetAccess)(physical, 2 * MIB, &access, 1));
    OK(CU(cuMemRelease)(h));
    OK(CU(cuMemsetD32_v2)(physical, 5, WORDS));
}

static void
make_array(void)
{
    const CUDA_ARRAY_DESCRIPTOR_v2 d = {
        .Width = SIDE, .Height = SIDE, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUDA_RESOURCE_DESC_v1 res = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const CUDA_TEXTURE_DESC_v1 tex = {.flags = CU_TRSF_READ_AS_INTEGER};

    OK(CU(cuArrayCreate_v2)(&array, &d));
    res.res.array.hArray = array;
    OK(CU(cuTexObjectCreate)(&texture, &res, &tex, NULL));
}

static void
make_graph(void)
{
    CUgraph g;

    OK(CU(cuStreamBeginCapture_v2)(second, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    run_mix(other, WORDS, 11, second);
    OK(CU(cuMemcpyDtoDAsync_v2)(physical, other, BYTES, second));
    run_mix(physical, WORDS, 13, second);
    OK(CU(cuStreamEndCapture)(second, &g));
    OK(CU(cuGraphInstantiateWithFlags)(&graph, g, 0));
    OK(CU(cuGraphDestroy)(g));
}

static void
make_all(void)
{
    CUmodule m;
    CUdeviceptr salt;
    size_t size;
    const uint32_t value = 1234567;

    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuModuleLoadData)(&m, ptx));
    OK(CU(cuModuleGetFunction)(&mix, m, "mix"));
    OK(CU(cuModuleGetFunction)(&fold, m, "fold"));
    OK(CU(cuModuleGetFunction)(&give, m, "give"));
    OK(CU(cuModuleGetFunction)(&look, m, "look"));
    if (!getenv("HED_NAMELESS")) {
        OK(CU(cuModuleGetGlobal_v2)(&salt, &size, m, "salt"));
        OK(CU(cuMemcpyHtoD_v2)(salt, &value, sizeof value));
    }
    OK(CU(cuStreamCreate)(&first, CU_STREAM_NON_BLOCKING));
    OK(CU(cuStreamCreate)(&second, CU_STREAM_DEFAULT));
    OK(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuMemAlloc_v2)(&plain, BYTES));
    OK(CU(cuMemAlloc_v2)(&other, BYTES));
    OK(CU(cuMemAllocManaged)(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    OK(CU(cuMemHostAlloc)((void **)&pinned, BYTES, 0));
    OK(CU(cuMemsetD32_v2)(plain, 1, WORDS));
    OK(CU(cuMemsetD32_v2)(other, 2, WORDS));
    memset((void *)(uintptr_t)managed, 3, BYTES);
    memset(pinned, 4, BYTES);
    make_physical();
    make_array();
    make_graph();
    if (idle_bytes) {
        OK(CU(cuMemAlloc_v2)(&idle, idle_bytes));
        OK(CU(cuMemsetD32_v2)(idle, 9, idle_bytes / 4));
        run_idle(idle_bytes, false);
    }
    OK(CU(cuCtxSynchronize)());
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void
count_call(void *arg)
{
    called += (uintptr_t)arg;
}

static void
use_array(CUstream s)
{
    const CUDA_MEMCPY2D_v2 in = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .srcDevice = plain,
                                 .srcPitch = SIDE * 4,
                                 .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                 .dstArray = array,
                                 .WidthInBytes = SIDE * 4,
                                 .Height = SIDE / 2};
    void *params[] = {&other, &texture};

    run(look, SIDE, SIDE, s, params);
    OK(CU(cuMemcpy2DAsync_v2)(&in, s));
}

static void
use_pool(uint32_t k)
{
    CUdeviceptr p;

    OK(CU(cuMemAllocAsync)(&p, BYTES, first));
    OK(CU(cuMemcpyDtoDAsync_v2)(p, plain, BYTES, first));
    run_mix(p, WORDS, k, first);
    run_fold(p, WORDS, first);
    OK(CU(cuMemFreeAsync)(p, first));
}

static void
one_round(uint32_t k)
{
    run_mix(plain, WORDS, k, first);
    OK(CU(cuEventRecord)(event, first));
    OK(CU(cuStreamWaitEvent)(second, event, 0));
    use_array(second);
    OK(CU(cuGraphLaunch)(graph, second));
    OK(CU(cuEventRecord)(event, second));
    OK(CU(cuStreamWaitEvent)(first, event, 0));
    use_pool(k);
    run_mix(managed, WORDS, k, first);
    OK(CU(cuLaunchHostFunc)(first, count_call, (void *)(uintptr_t)k));
    OK(CU(cuMemcpyDtoHAsync_v2)(pinned, physical, BYTES, first));
    OK(CU(cuStreamSynchronize)(first));
    pinned[k % WORDS] ^= ((uint32_t *)(uintptr_t)managed)[k % WORDS];
    OK(CU(cuMemcpyHtoDAsync_v2)(other, pinned, BYTES / 2, first));
    run_fold(other, WORDS, first);
    OK(CU(cuStreamSynchronize)(first));
    ((uint32_t *)(uintptr_t)managed)[k % WORDS] += pinned[0];
}

static void
print_result(void)
{
    static uint64_t out[1025];
    uint64_t sum = called;
    CUdeviceptr p;
    void *params[] = {&p};

    run_fold(managed, WORDS, NULL);
    run_fold(physical, WORDS, NULL);
    run_idle(idle_bytes, true);
    OK(CU(cuMemAlloc_v2)(&p, sizeof out));
    run(give, 1, 1024, NULL, params);
    OK(CU(cuMemcpyDtoH_v2)(out, p, sizeof out));
    for (size_t i = 0; i < 1025; i++)
        sum = sum * 6364136223846793005u + out[i];
    printf("%016llx\n", (unsigned long long)sum);
}

int
main(int argc, char **argv)
{
    const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 100;
    const bool waits = argc > 3 && strcmp(argv[3], "stdin") == 0;
    const unsigned pause = argc > 3 && !waits ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    const size_t percent = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    char line[16];

    idle_bytes = (argc > 2 ? strtoul(argv[2], NULL, 10) : 0) * MIB;
    conf_open();
    make_all();
    printf("ready\n");
    (void)fflush(stdout);
    for (uint32_t k = 1; k <= rounds; k++) {
        if (waits && !fgets(line, sizeof line, stdin))
            return 1;
        one_round(k);
        run_idle(idle_bytes / 100 * percent / 4096 * 4096, false);
        if (waits) {
            OK(CU(cuCtxSynchronize)());
            printf("done\n");
            (void)fflush(stdout);
        }
        if (pause)
            (void)usleep(pause);
    }
    print_result();
    return 0;
}
