/* CUDA between processes: memory, events and pools, in both directions.
 *
 *     processes CASE
 */
#include "processes.h"

/* ---- memory ---------------------------------------------------------------------------------- */

/* One process of two that do the same. The value tells them apart. */
static void
exchange(uint32_t own, uint32_t others)
{
    CUdeviceptr before = words_of(own + 100);
    CUdeviceptr p = words_of(own);
    CUdeviceptr behind = words_of(own + 200);
    CUdeviceptr start;
    size_t size;
    uint32_t first;
    CUipcMemHandle_v1 handle;

    /* An address inside it stands for the allocation. */
    tell_memory(p + 40);

    CUdeviceptr theirs = open_heard();

    CHECK(theirs != p, "the same address");
    all_are(theirs, others);
    OK(CU(cuMemGetAddressRange_v2)(&start, &size, theirs + 12));
    CHECK_IS(start, theirs);
    CHECK_IS(size, WORDS * sizeof(uint32_t));
    CHECK_IS(CU(cuMemFree_v2)(theirs), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuIpcGetMemHandle)(&handle, theirs), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuIpcCloseMemHandle)(p), CUDA_ERROR_INVALID_VALUE);
    meet();
    OK(CU(cuMemsetD32_v2)(theirs, own + 1, WORDS));
    OK(CU(cuCtxSynchronize)());
    meet();
    all_are(p, others + 1);
    meet();
    OK(CU(cuMemcpyHtoD_v2)(theirs, &own, sizeof own));
    meet();
    OK(CU(cuMemcpyDtoH_v2)(&first, p, sizeof first));
    CHECK_IS(first, others);
    OK(CU(cuMemsetD32_v2)(p, others + 1, 1));
    all_are(before, own + 100);
    all_are(behind, own + 200);
    meet();
    OK(CU(cuIpcCloseMemHandle)(theirs));
    CHECK_IS(CU(cuIpcCloseMemHandle)(theirs), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuMemsetD8_v2)(theirs, 0, 1), CUDA_ERROR_INVALID_VALUE);
    meet();
    all_are(p, others + 1);
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuMemFree_v2)(before));
    OK(CU(cuMemFree_v2)(behind));
}

static int
memory_goes_both_ways(void)
{
    const pid_t child = two();

    begin();
    exchange(child ? 1000 : 5000, child ? 5000 : 1000);
    return child ? end_of(child) : 0;
}

static int
a_name_is_opened_again(void)
{
    const pid_t child = two();
    CUipcMemHandle_v1 handle;
    CUdeviceptr p, once, again;

    begin();
    if (child) {
        p = words_of(7);
        OK(CU(cuIpcGetMemHandle)(&handle, p));
        CHECK_IS(CU(cuIpcOpenMemHandle_v2)(&once, handle, LAZY), CUDA_ERROR_INVALID_CONTEXT);
        CHECK_IS(CU(cuIpcOpenMemHandle_v2)(&once, handle, 0), CUDA_ERROR_INVALID_VALUE);
        tell(&handle, sizeof handle);
        meet();
        /* The memory stays with those who have it. */
        OK(CU(cuMemFree_v2)(p));
        p = words_of(9);
        meet();
        all_are(p, 9);
        return end_of(child);
    }
    hear(&handle, sizeof handle);
    OK(CU(cuIpcOpenMemHandle_v2)(&once, handle, LAZY));
    OK(CU(cuIpcOpenMemHandle_v2)(&again, handle, LAZY));
    CHECK_IS(once, again);
    OK(CU(cuIpcCloseMemHandle)(once));
    all_are(again, 7);
    meet();
    meet();
    all_are(again, 7);
    OK(CU(cuMemsetD32_v2)(again, 8, WORDS));
    all_are(again, 8);
    OK(CU(cuIpcCloseMemHandle)(again));
    CHECK_IS(CU(cuMemsetD8_v2)(again, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuIpcOpenMemHandle_v2)(&once, handle, LAZY), CUDA_ERROR_INVALID_VALUE);
    return 0;
}

static const char adder[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 words, .param .u64 flag, .param .u32 rounds)\n{\n"
    ".reg .b64 %w, %f, %o; .reg .b32 %n, %i, %x; .reg .pred %p;\n"
    "ld.param.u64 %w, [words]; ld.param.u64 %f, [flag]; ld.param.u32 %n, [rounds];\n"
    "mov.u32 %i, %ctaid.x; mov.u32 %x, %tid.x; mad.lo.u32 %i, %i, 256, %x;\n"
    "mul.wide.u32 %o, %i, 4; add.u64 %w, %w, %o;\n"
    "st.volatile.global.u32 [%f], 1;\n"
    "AGAIN: red.relaxed.sys.global.add.u32 [%w], 1;\n"
    "sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra AGAIN;\n"
    "ret;\n}\n";

/* A kernel adds to memory while it becomes shared: no addition is lost. */
static int
kernels_go_on_while_memory_is_shared(void)
{
    const uint32_t blocks = 64, rounds = 20000;
    uint32_t *got = malloc(blocks * 256 * sizeof *got);
    volatile uint32_t *flag;
    CUdeviceptr words, device_flag;
    CUipcMemHandle_v1 handle;
    CUmodule module;
    CUfunction f;
    CUstream s;
    uint32_t most = rounds;
    void *params[] = {&words, &device_flag, &most};

    begin();
    OK(CU(cuModuleLoadData)(&module, adder));
    OK(CU(cuModuleGetFunction)(&f, module, "add"));
    OK(CU(cuMemHostAlloc)((void **)&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(CU(cuMemHostGetDevicePointer_v2)(&device_flag, (void *)(uintptr_t)flag, 0));
    OK(CU(cuMemAlloc_v2)(&words, blocks * 256 * sizeof *got));
    OK(CU(cuMemsetD32_v2)(words, 0, blocks * 256));
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    *flag = 0;
    OK(CU(cuLaunchKernel)(f, blocks, 1, 1, 256, 1, 1, 0, s, params, NULL));
    WAIT_UNTIL(*flag == 1);
    OK(CU(cuIpcGetMemHandle)(&handle, words));
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuMemcpyDtoH_v2)(got, words, blocks * 256 * sizeof *got));
    for (uint32_t i = 0; i < blocks * 256; i++)
        CHECK(got[i] == rounds, "word %u is %u, not %u", i, got[i], rounds);
    free(got);
    return 0;
}

/* After memory was shared, a kernel that writes where it may not still fails. */
static int
bad_addresses_still_fail(void)
{
    CUdeviceptr words, nowhere = 4096;
    CUipcMemHandle_v1 handle;
    CUmodule module;
    CUfunction f;
    uint32_t most = 1;
    void *params[] = {&nowhere, &words, &most};

    begin();
    words = words_of(0);
    OK(CU(cuModuleLoadData)(&module, adder));
    OK(CU(cuModuleGetFunction)(&f, module, "add"));
    OK(CU(cuIpcGetMemHandle)(&handle, words));
    OK(CU(cuLaunchKernel)(f, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    CHECK_IS(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The exporter's stream waits for the importer, which sees the order of the exporter's work. */
static int
events_order_two_processes(void)
{
    const pid_t child = two();
    CUipcEventHandle_v1 handle;
    CUevent e, back;
    CUstream s;
    CUdeviceptr p;

    begin();
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    if (child) {
        p = words_of(0);
        OK(CU(cuEventCreate)(&e, INTERPROCESS));
        OK(CU(cuIpcGetEventHandle)(&handle, e));
        CHECK_IS(CU(cuIpcOpenEventHandle)(&back, handle), CUDA_ERROR_INVALID_CONTEXT);
        OK(CU(cuEventQuery)(e));
        OK(CU(cuLaunchHostFunc)(s, wait_for_byte, &peer));
        OK(CU(cuMemsetD32Async)(p, 11, WORDS, s));
        OK(CU(cuEventRecord)(e, s));
        CHECK_IS(CU(cuEventQuery)(e), CUDA_ERROR_NOT_READY);
        tell_memory(p);
        tell(&handle, sizeof handle);
        OK(CU(cuEventSynchronize)(e));
        /* Now the other way: it records, and this process's stream waits. */
        hear(&handle, sizeof handle);
        OK(CU(cuIpcOpenEventHandle)(&back, handle));
        OK(CU(cuStreamWaitEvent)(s, back, 0));
        OK(CU(cuStreamSynchronize)(s));
        all_are(p, 12);
        OK(CU(cuEventDestroy_v2)(back));
        OK(CU(cuEventDestroy_v2)(e));
        close(peer);
        return end_of(child);
    }

    uint32_t *seen;
    CUdeviceptr theirs = open_heard();

    hear(&handle, sizeof handle);
    OK(CU(cuMemAllocHost_v2)((void **)&seen, sizeof *seen));
    OK(CU(cuIpcOpenEventHandle)(&e, handle));
    CHECK_IS(CU(cuIpcGetEventHandle)(&handle, e), CUDA_ERROR_INVALID_HANDLE);
    CHECK_IS(CU(cuEventQuery)(e), CUDA_ERROR_NOT_READY);
    *seen = 1;
    OK(CU(cuStreamWaitEvent)(s, e, 0));
    OK(CU(cuMemcpyDtoHAsync_v2)(seen, theirs + 400, sizeof *seen, s));
    give_a_moment(20);
    CHECK_IS(CU(cuStreamQuery)(s), CUDA_ERROR_NOT_READY);
    CHECK_IS(*seen, 1);
    tell("", 1); /* lets the other's stream go on */
    OK(CU(cuStreamSynchronize)(s));
    CHECK_IS(*seen, 11);
    OK(CU(cuEventQuery)(e));
    OK(CU(cuEventSynchronize)(e));
    OK(CU(cuEventCreate)(&back, INTERPROCESS));
    OK(CU(cuMemsetD32Async)(theirs, 12, WORDS, s));
    OK(CU(cuEventRecord)(back, s));
    OK(CU(cuIpcGetEventHandle)(&handle, back));
    tell(&handle, sizeof handle);
    CHECK_IS(CU(cuEventCreate)(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuEventCreate)(&e, CU_EVENT_DISABLE_TIMING));
    CHECK_IS(CU(cuIpcGetEventHandle)(&handle, e), CUDA_ERROR_INVALID_HANDLE);
    /* The other opens it before this process ends. */
    CHECK_IS(recv(peer, &handle, 1, 0), 0);
    return 0;
}

/* Many records of one event by two processes that take turns. */
static int
events_are_recorded_in_turns(void)
{
    const uint32_t rounds = 400;
    const pid_t child = two();
    CUipcEventHandle_v1 handle;
    CUdeviceptr p;
    CUevent e;
    CUstream s;

    begin();
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    if (child) {
        p = words_of(0);
        tell_memory(p);
        OK(CU(cuEventCreate)(&e, INTERPROCESS));
        OK(CU(cuIpcGetEventHandle)(&handle, e));
        tell(&handle, sizeof handle);
    } else {
        p = open_heard();
        hear(&handle, sizeof handle);
        OK(CU(cuIpcOpenEventHandle)(&e, handle));
    }
    for (uint32_t i = 0; i < rounds; i++) {
        if ((i % 2 == 0) == (child != 0)) {
            OK(CU(cuMemsetD32Async)(p, i, WORDS, s));
            OK(CU(cuEventRecord)(e, s));
            tell("", 1);
        } else {
            char c;

            hear(&c, 1);
            OK(CU(cuStreamWaitEvent)(s, e, 0));
            if (i % 3 == 0)
                OK(CU(cuEventSynchronize)(e));
            else
                OK(CU(cuStreamSynchronize)(s));
            all_are(p, i);
        }
    }
    meet();
    return child ? end_of(child) : 0;
}

/* ---- pools ----------------------------------------------------------------------------------- */

static int
pools_are_shared(void)
{
    const pid_t child = two();
    CUmemPoolProps_v1 props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemPoolPtrExportData_v1 data[2];
    CUmemoryPool pool, other;
    CUdeviceptr p[2], none;
    CUmemGenericAllocationHandle physical;
    int fd;

    begin();
    if (child) {
        OK(CU(cuMemPoolCreate)(&pool, &props));
        OK(CU(cuMemPoolExportToShareableHandle)(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                0));
        tell_fd(fd);
        for (int i = 0; i < 2; i++) {
            /* The second is larger than what the pool grows by. */
            OK(CU(cuMemAllocFromPoolAsync)(&p[i], i ? 40u << 20 : 4 * WORDS, pool, NULL));
            OK(CU(cuMemsetD32_v2)(p[i], 21 + (unsigned)i, WORDS));
            OK(CU(cuMemPoolExportPointer)(&data[i], p[i]));
        }
        OK(CU(cuMemAlloc_v2)(&none, 4));
        CHECK_IS(CU(cuMemPoolExportPointer)(&data[0], none), CUDA_ERROR_INVALID_VALUE);
        OK(CU(cuCtxSynchronize)());
        tell(data, sizeof data);
        meet();
        for (int i = 0; i < 2; i++) {
            all_are(p[i], 31);
            OK(CU(cuMemFreeAsync)(p[i], NULL));
        }
        OK(CU(cuMemPoolDestroy)(pool));
        return end_of(child);
    }
    fd = hear_fd();
    hear(data, sizeof data);
    CHECK_IS(CU(cuMemImportFromShareableHandle)(&physical, (void *)(uintptr_t)fd,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
             CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemPoolImportFromShareableHandle)(&pool, (void *)(uintptr_t)fd,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    close(fd);
    CHECK_IS(CU(cuMemAllocFromPoolAsync)(&none, 4, pool, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuDeviceSetMemPool)(0, pool), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemPoolCreate)(&other, &props));
    CHECK_IS(CU(cuMemPoolImportPointer)(&none, other, &data[0]), CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 2; i++) {
        OK(CU(cuMemPoolImportPointer)(&p[i], pool, &data[i]));
        all_are(p[i], 21 + (unsigned)i);
        OK(CU(cuMemsetD32_v2)(p[i], 31, WORDS));
    }
    CHECK_IS(CU(cuIpcCloseMemHandle)(p[0]), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemFreeAsync)(p[0], NULL));
    OK(CU(cuMemFree_v2)(p[1]));
    OK(CU(cuCtxSynchronize)());
    CHECK_IS(CU(cuMemsetD8_v2)(p[0], 0, 1), CUDA_ERROR_INVALID_VALUE);
    data[0].reserved[30] ^= 1; /* the secret, or the part that is meant */
    CHECK(CU(cuMemPoolImportPointer)(&none, pool, &data[0]) != CUDA_SUCCESS, "a changed pointer");
    OK(CU(cuMemPoolDestroy)(pool));
    meet();
    return 0;
}

static const struct process_case cases[] = {
    {"memory_goes_both_ways", memory_goes_both_ways},
    {"a_name_is_opened_again", a_name_is_opened_again},
    {"kernels_go_on_while_memory_is_shared", kernels_go_on_while_memory_is_shared},
    {"bad_addresses_still_fail", bad_addresses_still_fail},
    {"events_order_two_processes", events_order_two_processes},
    {"events_are_recorded_in_turns", events_are_recorded_in_turns},
    {"pools_are_shared", pools_are_shared},
};

int
main(int argc, char **argv)
{
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
