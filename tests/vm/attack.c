/* A program that has a session like any other, and then writes into its own channel what no client
 * of heddle's would.
 *
 *     attack KIND      see `kinds`
 *
 * Says "done" when it has done so, and stays until it is killed.
 */
#include "conformance/conf.h"

#include <inttypes.h>
#include <sys/socket.h>

#include <linux/vm_sockets.h>

#include "remote/wire/channel/shm.h"

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define FDS 256
#define FLOOD (1 << 20) /* bytes */

static struct hed_shm_memory *memory; /* of the channel, in the window */
static int vsock;

/* ---- finding them ---------------------------------------------------------------------------- */

static void
find_channel(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    uintptr_t from, to;

    CHECK(maps, "no /proc");
    while (!memory && fgets(line, sizeof line, maps))
        if (strstr(line, "/resource2") && sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 &&
            to - from == HED_SHM_SIZE + HED_CHANNEL_SLOTS)
            memory = (struct hed_shm_memory *)from; /* NOLINT: it is an address */
    (void)fclose(maps);
    CHECK(memory, "the channel is not in a window");
}

static void
find_vsock(void)
{
    struct sockaddr_vm at;

    for (vsock = 0; vsock < FDS; vsock++) {
        socklen_t size = sizeof at;

        if (getsockname(vsock, (struct sockaddr *)&at, &size) == 0 && at.svm_family == AF_VSOCK)
            return;
    }
    CHECK(false, "there is no connection");
}

/* ---- what it does ---------------------------------------------------------------------------- */

static struct hed_ring_words *
call_words(void)
{
    return &memory->rings[HED_SHM_CALL];
}

static void
ring_doorbell(void)
{
    CHECK_IS(send(vsock, "W", 1, 0), 1);
}

/* Where the next message would begin; it is `size` bytes long, it says. */
static void
put_size(uint32_t size)
{
    const uint64_t tail = atomic_load(&call_words()->tail);
    uint8_t *ring = (uint8_t *)memory + HED_SHM_WORDS;

    memcpy(ring + tail % HED_SHM_CALL_SIZE, &size, sizeof size);
    hed_doorbell_store(&call_words()->tail, tail + HED_MSG_ALIGN);
    ring_doorbell();
}

static void
write_huge_size(void)
{
    put_size(UINT32_MAX - 15);
}

static void
write_lone_pad(void)
{
    put_size(HED_RING_PAD);
}

static void
write_impossible_tail(void)
{
    hed_doorbell_store(&call_words()->tail, UINT64_MAX - 15);
}

static void
send_noise(void)
{
    CHECK_IS(send(vsock, "x", 1, 0), 1);
}

static void
send_no_more(void)
{
    CHECK_IS(shutdown(vsock, SHUT_WR), 0);
}

static void
read_no_more(void)
{
    CHECK_IS(shutdown(vsock, SHUT_RD), 0);
}

static void
ring_for_nothing(void)
{
    static char rings[FLOOD];

    memset(rings, HED_DOORBELL_BYTE, sizeof rings);
    for (size_t n = 0; n < sizeof rings;) {
        const ssize_t some = send(vsock, rings + n, sizeof rings - n, 0);

        CHECK(some > 0, "the connection is gone");
        n += (size_t)some;
    }
}

/* Everything in the words that is not a position. */
static void
write_odd_words(void)
{
    for (int i = 0; i < HED_SHM_RINGS; i++) {
        hed_doorbell_store(&memory->rings[i].reader_parked, UINT32_MAX);
        hed_doorbell_store(&memory->rings[i].writer_parked, UINT32_MAX);
    }
    hed_doorbell_store(&memory->beats, UINT32_MAX);
}

static const struct {
    const char *name;
    void (*function)(void);
} kinds[] = {
    {"size", write_huge_size},
    {"pad", write_lone_pad},
    {"tail", write_impossible_tail},
    {"noise", send_noise},
    {"send-no-more", send_no_more},
    {"read-no-more", read_no_more},
    {"ring-for-nothing", ring_for_nothing},
    {"odd-words", write_odd_words},
};

int
main(int argc, char **argv)
{
    CUcontext ctx;
    CUdeviceptr device;
    void *pinned;
    bool found = false;

    CHECK(argc == 2, "attack KIND");
    OK(CU(cuInit)(0));
    OK(CU(cuCtxCreate_v2)(&ctx, 0, 0));
    OK(CU(cuMemAlloc_v2)(&device, 4096));
    OK(CU(cuMemAllocHost_v2)(&pinned, 1 << 20));
    OK(CU(cuMemcpyHtoD_v2)(device, pinned, 4096));
    find_channel();
    find_vsock();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, argv[1]) != 0)
            continue;
        kinds[i].function();
        found = true;
    }
    CHECK(found, "no such attack: %s", argv[1]);
    puts("done");
    fflush(stdout);
    for (;;)
        (void)pause();
}
