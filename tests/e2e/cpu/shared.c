/* Physical memory that two processes share by a file descriptor, and descriptors that are no such
 * memory. */
#include "conformance/conf.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define SIZE ((size_t)2 << 20)

static void
send_descriptor(int to, int fd)
{
    char byte = 0;
    struct iovec data = {&byte, 1};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    CHECK(sendmsg(to, &m, 0) == 1, "sendmsg failed");
}

static int
take_descriptor(int from)
{
    char byte;
    struct iovec data = {&byte, 1};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    int fd = -1;

    CHECK(recvmsg(from, &m, 0) == 1 && CMSG_FIRSTHDR(&m), "recvmsg failed");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static void
begin(CUdevice ordinal)
{
    CUcontext c;
    CUdevice device;

    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&device, ordinal));
    OK(CU(cuDevicePrimaryCtxRetain)(&c, device));
    OK(CU(cuCtxSetCurrent)(c));
}

static CUdeviceptr
map_memory(CUmemGenericAllocationHandle memory)
{
    const CUmemAccessDesc_v1 access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                       .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr at;

    OK(CU(cuMemAddressReserve)(&at, SIZE, 0, 0, 0));
    OK(CU(cuMemMap)(at, SIZE, 0, memory, 0));
    OK(CU(cuMemSetAccess)(at, SIZE, &access, 1));
    return at;
}

/* The other process: reads what the first one wrote, and answers in the same memory. */
static int
run_importer(int socket)
{
    CUmemGenericAllocationHandle memory;
    CUmemAllocationProp_v1 prop;
    uint32_t value = 0;
    size_t before, after, total;

    begin(0);
    OK(CU(cuMemGetInfo_v2)(&before, &total));

    const int fd = take_descriptor(socket);

    OK(CU(cuMemImportFromShareableHandle)(&memory, (void *)(intptr_t)fd, FD));
    close(fd);
    OK(CU(cuMemGetInfo_v2)(&after, &total));
    CHECK(before == after, "the importer is charged");
    OK(CU(cuMemGetAllocationPropertiesFromHandle)(&prop, memory));
    CHECK(prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop.location.id == 1,
          "the memory is on device %d", prop.location.id);

    const CUdeviceptr at = map_memory(memory);

    OK(CU(cuMemRelease)(memory));
    OK(CU(cuMemcpyDtoH_v2)(&value, at + SIZE - 4, sizeof value));
    CHECK(value == 42, "the other process wrote %u", value);
    value++;
    OK(CU(cuMemcpyHtoD_v2)(at, &value, sizeof value));
    return 0;
}

/* Descriptors of other things. */
static void
refuse_others(void)
{
    CUmemGenericAllocationHandle memory;
    const int file = open("/dev/zero", O_RDWR);
    const int plain = memfd_create("plain", 0);
    const int sealed = memfd_create("sealed", MFD_ALLOW_SEALING);
    const int wrong[] = {-1, 12345, file, plain, sealed};

    CHECK(ftruncate(plain, SIZE + 4096) == 0 && ftruncate(sealed, SIZE + 4096) == 0 &&
              fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
          "cannot make files");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_IS(CU(cuMemImportFromShareableHandle)(&memory, (void *)(intptr_t)wrong[i], FD),
                 CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuMemImportFromShareableHandle)(&memory, NULL, CU_MEM_HANDLE_TYPE_FABRIC),
             CUDA_ERROR_NOT_SUPPORTED);
}

static int
run_exporter(int socket)
{
    CUmemAllocationProp_v1 prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .requestedHandleTypes = FD,
                                   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
    CUmemGenericAllocationHandle memory, own;
    uint32_t value = 42;
    int can = 0, fd = -1, status;

    begin(0);
    OK(CU(cuDeviceGetAttribute)(
        &can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
    CHECK(can == 1, "the device says that it cannot");
    OK(CU(cuMemCreate)(&memory, SIZE, &prop, 0));

    const CUdeviceptr at = map_memory(memory);

    OK(CU(cuMemcpyHtoD_v2)(at + SIZE - 4, &value, sizeof value));
    OK(CU(cuMemExportToShareableHandle)(&fd, memory, FD, 0));
    send_descriptor(socket, fd);
    close(fd);
    CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
    OK(CU(cuMemcpyDtoH_v2)(&value, at, sizeof value));
    CHECK(value == 43, "the other process wrote %u", value);

    /* Only memory that was made for it can be exported. */
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    OK(CU(cuMemCreate)(&own, SIZE, &prop, 0));
    CHECK_IS(CU(cuMemExportToShareableHandle)(&fd, own, FD, 0), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemRelease)(own));
    refuse_others();
    return 0;
}

int
main(void)
{
    int pair[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair failed");
    /* Before CUDA starts: a child cannot use the parent's. */
    if (fork() == 0)
        return run_importer(pair[1]);
    return run_exporter(pair[0]);
}
