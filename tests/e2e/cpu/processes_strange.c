/* CUDA between processes that are killed, that belong to other users, and that are given names
 * which are not what they seem.
 *
 *     processes_strange CASE
 */
#include "processes.h"

/* ---- ends ------------------------------------------------------------------------------------ */

/* A name ends with its exporter, whose memory a server's worker may need a while to give back. */
static bool
name_is_refused(CUipcMemHandle_v1 name)
{
    CUdeviceptr p;
    const CUresult r = CU(cuIpcOpenMemHandle_v2)(&p, name, LAZY);

    if (r == CUDA_SUCCESS) {
        OK(CU(cuIpcCloseMemHandle)(p));
        return false;
    }
    CHECK_IS(r, CUDA_ERROR_INVALID_VALUE);
    return true;
}

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
    WAIT_UNTIL(name_is_refused(memory));
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

/* A client that the server cannot tell from others: all of it is refused, and asked about, as not
 * supported. */
static int
strangers_are_told(void)
{
    CUmemPoolProps_v1 props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUipcMemHandle_v1 handle = {{0}};
    CUmemoryPool pool;
    CUdeviceptr p;
    CUevent e;
    int can = 1;

    begin();
    p = words_of(1);
    CHECK_IS(CU(cuIpcGetMemHandle)(&handle, p), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_IS(CU(cuIpcOpenMemHandle_v2)(&p, handle, LAZY), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_IS(CU(cuEventCreate)(&e, INTERPROCESS), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_IS(CU(cuMemPoolCreate)(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
    OK(CU(cuDeviceGetAttribute)(&can, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
    CHECK_IS(can, 0);
    OK(CU(cuDeviceGetAttribute)(
        &can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
    CHECK_IS(can, 0);
    return 0;
}

/* ---- saving a program that shares ------------------------------------------------------------ */

/* Asks this program for something, as `heddle snap` does; HED_ASK names the program that asks. */
static void
ask_self(const char *request, char *answer, size_t size)
{
    char line[512];

    (void)snprintf(line, sizeof line, "%s %d %s 2>&1", getenv("HED_ASK"), (int)getpid(), request);

    FILE *f = popen(line, "r");

    CHECK(f, "%s", line);
    answer[fread(answer, 1, size - 1, f)] = '\0';
    (void)pclose(f);
}

static void
is_paused(bool can)
{
    char answer[1000];

    ask_self("pause", answer, sizeof answer);
    CHECK((strstr(answer, "CUDA IPC") == NULL) == can, "pause: %s", answer);
    if (can) {
        CHECK(strstr(answer, "error") == NULL, "pause: %s", answer);
        ask_self("resume", answer, sizeof answer);
        CHECK(strstr(answer, "error") == NULL, "resume: %s", answer);
    }
}

/* It is refused, with the reason, for as long as it shares anything. */
static int
who_shares_is_not_saved(void)
{
    const pid_t child = two();
    CUipcMemHandle_v1 handle;
    CUdeviceptr p;
    CUevent e;

    begin();
    if (!child) {
        p = words_of(1);
        tell_memory(p);
        meet();
        OK(CU(cuMemFree_v2)(p));
        return 0;
    }
    is_paused(true);
    p = words_of(2);
    OK(CU(cuIpcGetMemHandle)(&handle, p));
    is_paused(false);
    OK(CU(cuMemFree_v2)(p));
    is_paused(true);
    p = open_heard();
    is_paused(false);
    OK(CU(cuIpcCloseMemHandle)(p));
    is_paused(true);
    OK(CU(cuEventCreate)(&e, INTERPROCESS));
    is_paused(false);
    OK(CU(cuEventDestroy_v2)(e));
    is_paused(true);
    meet();
    return end_of(child);
}

static const struct process_case cases[] = {
    {"an_exporter_is_killed", an_exporter_is_killed},
    {"hostile_names_are_refused", hostile_names_are_refused},
    {"other_users_are_refused", other_users_are_refused},
    {"strangers_are_told", strangers_are_told},
    {"who_shares_is_not_saved", who_shares_is_not_saved},
};

int
main(int argc, char **argv)
{
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
