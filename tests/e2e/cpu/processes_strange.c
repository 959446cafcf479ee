/* CUDA between processes that are killed, that belong to other users, and that are given names
 * which are not what they seem.
 *
 *     processes_strange CASE
 */
#include "processes.h"

/* ---- ends ------------------------------------------------------------------------------------ */

/* The exporter is killed while its stream has not reached the record of an event. */
static int
an_exporter_is_killed(void)
{
    const pid_t child = two();
    CUipcEventHandle_v1 event;
    CUipcMemHandle_v1 memory;
    CUdeviceptr p;
    CUevent e;
    CUstream s;

    if (!child) {
        int never[2];

        CHECK_IS(pipe(never), 0);
        begin();
        p = words_of(3);
        OK(CU(cuIpcGetMemHandle)(&memory, p));
        OK(CU(cuEventCreate)(&e, INTERPROCESS));
        OK(CU(cuIpcGetEventHandle)(&event, e));
        OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
        OK(CU(cuLaunchHostFunc)(s, wait_for_byte, &never[0]));
        OK(CU(cuEventRecord)(e, s));
        tell(&memory, sizeof memory);
        tell(&event, sizeof event);
        for (;;)
            pause();
    }
    begin();
    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    hear(&memory, sizeof memory);
    hear(&event, sizeof event);
    OK(CU(cuIpcOpenMemHandle_v2)(&p, memory, LAZY));
    OK(CU(cuIpcOpenEventHandle)(&e, event));
    OK(CU(cuStreamWaitEvent)(s, e, 0));
    CHECK_IS(CU(cuStreamQuery)(s), CUDA_ERROR_NOT_READY);
    CHECK_IS(CU(cuEventQuery)(e), CUDA_ERROR_NOT_READY);
    kill(child, SIGKILL);
    CHECK_IS(end_of(child), -SIGKILL);
    /* Its work is gone, so there is nothing to wait for. */
    OK(CU(cuStreamSynchronize)(s));
    OK(CU(cuEventSynchronize)(e));
    OK(CU(cuEventQuery)(e));
    all_are(p, 3);
    OK(CU(cuMemsetD32_v2)(p, 4, WORDS));
    all_are(p, 4);
    OK(CU(cuIpcCloseMemHandle)(p));
    CHECK_IS(CU(cuIpcOpenMemHandle_v2)(&p, memory, LAZY), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuIpcOpenEventHandle)(&e, event), CUDA_ERROR_MAP_FAILED);
    return 0;
}

/* ---- names that are not what they seem ------------------------------------------------------- */

/* Where the number of the exporter's descriptor lies in a name. The exporter may have several of
 * the same file, which has the secret; one of another file is refused. */
#define FD_BEGIN 12
#define FD_END 16
/* Where the part of the file lies that is meant. */
#define PART_BEGIN 40
#define PART_END 56

/* No byte of a name can be changed without its being refused, or meaning the same or less. */
static void
refuses_changed(const CUipcMemHandle_v1 *good)
{
    for (size_t i = 0; i < sizeof good->reserved; i++)
        for (unsigned bit = 0; bit < 8; bit += 3) {
            CUipcMemHandle_v1 bad = *good;
            CUdeviceptr p = 0;

            bad.reserved[i] = (char)(bad.reserved[i] ^ 1 << bit);

            const CUresult r = CU(cuIpcOpenMemHandle_v2)(&p, bad, LAZY);

            /* Another part of the same memory is no other memory. */
            CHECK(r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_INVALID_CONTEXT ||
                      r == CUDA_ERROR_OUT_OF_MEMORY ||
                      (r == CUDA_SUCCESS &&
                       ((i >= PART_BEGIN && i < PART_END) || (i >= FD_BEGIN && i < FD_END))),
                  "byte %zu: %d", i, (int)r);
            if (r != CUDA_SUCCESS)
                continue;
            if (i < FD_END)
                all_are(p, 1);
            OK(CU(cuIpcCloseMemHandle)(p));
        }
}

static int
hostile_names_are_refused(void)
{
    const pid_t child = two();
    CUipcMemHandle_v1 handle;
    CUipcEventHandle_v1 event;
    CUdeviceptr p;
    CUevent e;

    begin();
    if (child) {
        p = words_of(1);
        tell_memory(p);
        OK(CU(cuEventCreate)(&e, INTERPROCESS));
        OK(CU(cuIpcGetEventHandle)(&event, e));
        tell(&event, sizeof event);
        meet();
        return end_of(child);
    }
    hear(&handle, sizeof handle);
    hear(&event, sizeof event);
    refuses_changed(&handle);
    /* One kind is not the other. */
    memcpy(&handle, &event, sizeof event);
    CHECK_IS(CU(cuIpcOpenMemHandle_v2)(&p, handle, LAZY), CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; i < 1000; i++) {
        for (size_t k = 0; k < sizeof handle.reserved; k++)
            handle.reserved[k] = (char)(rand() >> 7);
        memcpy(&event, &handle, sizeof event);
        CHECK_IS(CU(cuIpcOpenMemHandle_v2)(&p, handle, LAZY), CUDA_ERROR_INVALID_VALUE);
        CHECK_IS(CU(cuIpcOpenEventHandle)(&e, event), CUDA_ERROR_MAP_FAILED);
    }
    meet();
    return 0;
}

/* A name of another user, in both directions. */
static int
other_users_are_refused(void)
{
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: it takes two users, and so needs to be root\n");
        return 77;
    }

    const pid_t child = two();
    CUipcMemHandle_v1 handle;
    CUdeviceptr p;

    if (!child)
        CHECK_IS(setresuid(65534, 65534, 65534), 0);
    begin();
    p = words_of(1);
    tell_memory(p);
    hear(&handle, sizeof handle);
    CHECK_IS(CU(cuIpcOpenMemHandle_v2)(&p, handle, LAZY), CUDA_ERROR_INVALID_VALUE);
    meet();
    return child ? end_of(child) : 0;
}

static const struct process_case cases[] = {
    {"an_exporter_is_killed", an_exporter_is_killed},
    {"hostile_names_are_refused", hostile_names_are_refused},
    {"other_users_are_refused", other_users_are_refused},
};

int
main(int argc, char **argv)
{
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
