/* Included by programs that fork before they use CUDA, whose two processes talk over a socket:
 * bytes that both know the meaning of.
 */
#pragma once

#include "conformance/conf.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define WORDS 1000
#define INTERPROCESS (CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)
#define LAZY CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

static int peer; /* the socket */

static inline void
tell(const void *bytes, size_t size)
{
    CHECK_IS(send(peer, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static inline void
hear(void *bytes, size_t size)
{
    CHECK_IS(recv(peer, bytes, size, MSG_WAITALL), (ssize_t)size);
}

/* Both have come this far. */
static inline void
meet(void)
{
    char c = 0;

    tell(&c, 1);
    hear(&c, 1);
}

static inline void
tell_fd(int fd)
{
    char c = 0, room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec v = {&c, 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);

    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    CHECK_IS(sendmsg(peer, &m, MSG_NOSIGNAL), 1);
}

static inline int
hear_fd(void)
{
    int fd;
    char c = 0, room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec v = {&c, 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};

    CHECK_IS(recvmsg(peer, &m, 0), 1);
    CHECK(CMSG_FIRSTHDR(&m), "no descriptor came");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static inline void
begin(void)
{
    CUcontext context;
    CUdevice device;

    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&device, 0));
    OK(CU(cuCtxCreate_v2)(&context, 0, device));
}

/* Forks; returns 0 in the child. Neither has used CUDA yet. */
static inline pid_t
two(void)
{
    int ends[2];

    CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);

    const pid_t child = fork();

    CHECK(child >= 0, "no child");
    peer = ends[child != 0];
    close(ends[child == 0]);
    return child;
}

static inline int
end_of(pid_t child)
{
    int status;

    CHECK_IS(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) || WIFSIGNALED(status), "%d", status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline CUdeviceptr
words_of(uint32_t value)
{
    CUdeviceptr p;

    OK(CU(cuMemAlloc_v2)(&p, WORDS * sizeof(uint32_t)));
    OK(CU(cuMemsetD32_v2)(p, value, WORDS));
    OK(CU(cuCtxSynchronize)()); /* another process does not wait for this one's streams */
    return p;
}

static inline void
all_are(CUdeviceptr p, uint32_t value)
{
    uint32_t got[WORDS];

    OK(CU(cuMemcpyDtoH_v2)(got, p, sizeof got));
    for (int i = 0; i < WORDS; i++)
        CHECK(got[i] == value, "word %d is %u, not %u", i, got[i], value);
}

static inline CUdeviceptr
open_heard(void)
{
    CUipcMemHandle_v1 handle;
    CUdeviceptr p;

    hear(&handle, sizeof handle);
    OK(CU(cuIpcOpenMemHandle_v2)(&p, handle, LAZY));
    return p;
}

static inline void
tell_memory(CUdeviceptr p)
{
    CUipcMemHandle_v1 handle;

    OK(CU(cuIpcGetMemHandle)(&handle, p));
    tell(&handle, sizeof handle);
}

static inline void
wait_for_byte(void *fd)
{
    char c;

    (void)!read(*(int *)fd, &c, 1);
}

struct process_case {
    const char *name;
    int (*run)(void);
};

static inline int
run_case(const struct process_case *cases, size_t count, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < count; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            return cases[i].run();
    fprintf(stderr, "%s CASE\n", argv[0]);
    return 2;
}
