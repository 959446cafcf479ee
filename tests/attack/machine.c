/* Attacks on the machine: its network, its resources, its kernel, its users. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "attack/attack.h"

static bool
connects_to(const void *address, size_t size)
{
    const struct sockaddr *a = address;
    const int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && connect(fd, a, (socklen_t)size) == 0;
}

static bool
connects_tcp(void)
{
    const struct sockaddr_in a = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)target.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return connects_to(&a, sizeof a);
}

static bool
connects_unix(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    (void)snprintf(a.sun_path, sizeof a.sun_path, "%.100s", target.socket);
    return connects_to(&a, sizeof a);
}

static bool
connects_abstract(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    (void)snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%s", target.abstract);
    return connects_to(&a, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(target.abstract));
}

static bool
listens(void)
{
    const struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 1) == 0;
}

static bool
makes_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0;
}

static void *
wait_for_ever(void *arg)
{
    for (;;)
        (void)pause();
    return arg;
}

static bool
makes_many_threads(void)
{
    pthread_attr_t small;
    pthread_t thread;

    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < 2 * THREADS; i++)
        if (pthread_create(&thread, &small, wait_for_ever, NULL) != 0)
            return false;
    return true;
}

static bool
takes_much_memory(void)
{
    return mmap(NULL, 2 * MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
}

static bool
makes_ipc(void)
{
    const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

    return id >= 0 && shmctl(id, IPC_RMID, NULL) == 0;
}

static bool
makes_namespace(void)
{
    return unshare(CLONE_NEWUSER) == 0;
}

static bool
mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/mnt", "tmpfs", 0, NULL) == 0;
}

static bool
becomes_root(void)
{
    return setresuid(0, 0, 0) == 0;
}

static bool
changes_root(void)
{
    return chroot("/") == 0;
}

static bool
uses_keys(void)
{
    return syscall(SYS_add_key, "user", "hedattack", "x", 1, KEY_SPEC_PROCESS_KEYRING) >= 0;
}

static bool
uses_bpf(void)
{
    /* A map of one element: the first words of the kernel's union bpf_attr. */
    unsigned attr[18] = {2, 4, 4, 1};

    return syscall(SYS_bpf, 0, attr, sizeof attr) >= 0;
}

static bool
uses_userfaultfd(void)
{
    return syscall(SYS_userfaultfd, 0) >= 0;
}

static bool
uses_io_uring(void)
{
    unsigned params[30] = {0};

    return syscall(SYS_io_uring_setup, 4, params) >= 0;
}

static bool
uses_perf(void)
{
    unsigned attr[28] = {1 /* software */, sizeof attr};

    return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0) >= 0;
}

static bool
becomes_traceable(void)
{
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static bool
asks_file_for_flags(void)
{
    int flags = 0;

    return ioctl(target.own, FS_IOC_GETFLAGS, &flags) == 0;
}

static bool
types_into_terminal(void)
{
    return target.terminal >= 0 && ioctl(target.terminal, TIOCSTI, "x") == 0;
}

/* The last one to close such a socket waits, and that may be the listener, if it is passed on. */
static bool
lets_a_socket_linger(void)
{
    const struct linger long_time = {.l_onoff = 1, .l_linger = 1 << 20};

    return target.connected >= 0 &&
           setsockopt(target.connected, SOL_SOCKET, SO_LINGER, &long_time, sizeof long_time) == 0;
}

static bool
makes_terminal(void)
{
    return open("/dev/ptmx", O_RDWR | O_CLOEXEC) >= 0;
}

static bool
looks_into_other_gpu_programs(void)
{
    return open("/dev/nvidia-uvm-tools", O_RDWR | O_CLOEXEC) >= 0;
}

const struct attack machine_attacks[] = {
    {"connects_tcp", connects_tcp, ANYBODY, true},
    {"connects_unix", connects_unix, ANYBODY, false},
    {"connects_abstract", connects_abstract, ANYBODY, true},
    {"listens", listens, ANYBODY, true},
    {"makes_socket", makes_socket, ANYBODY, false},
    {"makes_many_threads", makes_many_threads, ANYBODY, true},
    {"takes_much_memory", takes_much_memory, ANYBODY, true},
    {"makes_ipc", makes_ipc, KERNEL, false},
    {"makes_namespace", makes_namespace, KERNEL, false},
    {"mounts", mounts, ROOT, true},
    {"becomes_root", becomes_root, ROOT, true},
    {"changes_root", changes_root, ROOT, true},
    {"uses_keys", uses_keys, KERNEL, false},
    {"uses_bpf", uses_bpf, KERNEL, false},
    {"uses_userfaultfd", uses_userfaultfd, KERNEL, false},
    {"uses_io_uring", uses_io_uring, KERNEL, false},
    {"uses_perf", uses_perf, KERNEL, false},
    {"becomes_traceable", becomes_traceable, ANYBODY, false},
    {"asks_file_for_flags", asks_file_for_flags, KERNEL, false},
    {"types_into_terminal", types_into_terminal, KERNEL, false},
    {"makes_terminal", makes_terminal, KERNEL, true},
    {"lets_a_socket_linger", lets_a_socket_linger, ANYBODY, false},
    {"looks_into_other_gpu_programs", looks_into_other_gpu_programs, KERNEL, true},
    {0},
};
