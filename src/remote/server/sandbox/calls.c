/* The system calls of a worker, by purpose. What is in no list does not exist for it (ENOSYS), so
 * that libraries which try something new fall back to something old. What only an attack would call
 * ends the worker.
 *
 * Files are opened under Landlock (files.c); no row here can tell one path from another. So calls
 * that change files by their path and that Landlock does not know, such as chmod, are not listed.
 */
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "remote/server/sandbox/filter.h"
#include "remote/server/sandbox/rows.h"
#include "remote/server/sandbox/steps.h"

static const uint32_t zero[] = {0};
static const uint32_t thread_flag[] = {CLONE_THREAD};
static const uint32_t socket_options[] = SOCKET_OPTIONS;
static const uint32_t prctl_options[] = {PR_SET_NAME, PR_GET_NAME, PR_SET_TIMERSLACK,
                                         PR_GET_DUMPABLE};
static const uint32_t fcntl_commands[] = {
    F_GETFD,         F_SETFD,     F_GETFL,      F_SETFL,     F_DUPFD,     F_SETLK, F_SETLKW,
    F_DUPFD_CLOEXEC, F_OFD_SETLK, F_OFD_SETLKW, F_ADD_SEALS, F_GET_SEALS, F_GETLK, F_OFD_GETLK};
/* Questions only. Terminals can be written to as if somebody typed (TIOCSTI). */
static const uint32_t ioctl_requests[] = {FIONREAD, FIONBIO, SIOCOUTQ, TCGETS, TIOCGWINSZ};

/* Most frequent first: older kernels go through the list at each call. */
static const struct hed_filter_row worker_calls[] = {
    /* waiting, and sockets that are already open */
    ALWAYS(futex),
    ALWAYS(recvmsg),
    ALWAYS(sendmsg),
    ALWAYS(read),
    ALWAYS(write),
    ALWAYS(ppoll),
    ALWAYS(recvfrom),
    ALWAYS(sendto),
    ALWAYS(readv),
    ALWAYS(writev),
    ALWAYS(clock_nanosleep),
    ALWAYS(nanosleep),
    ALWAYS(epoll_pwait),
    ALWAYS(epoll_ctl),
    ALWAYS(epoll_create1),
    ALWAYS(eventfd2),
    ALWAYS(pselect6),
    ALWAYS(restart_syscall),
    ALWAYS(shutdown),
    ALWAYS(getsockopt),
    AMONG(setsockopt, 2, socket_options, EPERM),
    ALWAYS(getsockname),
    ALWAYS(getpeername),

    /* memory, also that in which compiled kernels lie */
    ALWAYS(mmap),
    ALWAYS(munmap),
    ALWAYS(mprotect),
    ALWAYS(madvise),
    ALWAYS(mremap),
    ALWAYS(brk),
    ALWAYS(memfd_create),
    ALWAYS(ftruncate),
    ALWAYS(fallocate),
    ALWAYS(mincore),
    ALWAYS(msync),
    ALWAYS(membarrier),
    ALWAYS(mlock),
    ALWAYS(munlock),

    /* threads: a new thread of this process, never a new process */
    {.number = SYS_clone, .test = HED_CALL_SETS, .argument = 0, .values = thread_flag, .count = 1},
    ALWAYS(gettid),
    ALWAYS(set_robust_list),
    ALWAYS(rseq),
    ALWAYS(set_tid_address),
    ALWAYS(sched_yield),
    ALWAYS(sched_getaffinity),
    ALWAYS(sched_getparam),
    ALWAYS(sched_getscheduler),
    ALWAYS(getcpu),
    ALWAYS(exit),
    ALWAYS(exit_group),
    AMONG(prctl, 0, prctl_options, EPERM),
    AMONG(sched_setaffinity, 0, zero, EPERM),
    AMONG(prlimit64, 0, zero, EPERM),
    NEVER(setpriority, EPERM),

    /* signals, to this process only */
    ALWAYS(rt_sigaction),
    ALWAYS(rt_sigprocmask),
    ALWAYS(rt_sigreturn),
    ALWAYS(sigaltstack),
    ALWAYS(rt_sigpending),
    ON_SELF(tgkill),
    ON_SELF(kill),

    /* clocks, and what the machine and the process are */
    ALWAYS(clock_gettime),
    ALWAYS(clock_getres),
    ALWAYS(gettimeofday),
    ALWAYS(times),
    ALWAYS(getrusage),
    ALWAYS(sysinfo),
    ALWAYS(uname),
    ALWAYS(getrandom),
    ALWAYS(getpid),
    ALWAYS(getppid),
    ALWAYS(getuid),
    ALWAYS(geteuid),
    ALWAYS(getgid),
    ALWAYS(getegid),
    ALWAYS(getresuid),
    ALWAYS(getresgid),
    ALWAYS(getcwd),

    /* files, where Landlock lets them be opened */
    ALWAYS(openat),
    ALWAYS(close),
    ALWAYS(close_range),
    ALWAYS(fstat),
    ALWAYS(newfstatat),
    ALWAYS(statx),
    ALWAYS(statfs),
    ALWAYS(fstatfs),
    ALWAYS(lseek),
    ALWAYS(pread64),
    ALWAYS(pwrite64),
    ALWAYS(preadv),
    ALWAYS(pwritev),
    ALWAYS(readlinkat),
    ALWAYS(faccessat),
    ALWAYS(faccessat2),
    ALWAYS(getdents64),
    ALWAYS(unlinkat),
    ALWAYS(renameat2),
    ALWAYS(linkat),
    ALWAYS(mkdirat),
    ALWAYS(fchmod),
    ALWAYS(flock),
    ALWAYS(fsync),
    ALWAYS(fdatasync),
    ALWAYS(dup),
    ALWAYS(dup3),
    AMONG(fcntl, 1, fcntl_commands, EINVAL),
    AMONG(ioctl, 1, ioctl_requests, ENOTTY),
    {.number = SYS_utimensat, .test = HED_CALL_NULL, .argument = 1},
#ifdef SYS_renameat
    ALWAYS(renameat),
#endif
#ifdef __x86_64__ /* the older forms of the same calls */
    ALWAYS(open),
    ALWAYS(stat),
    ALWAYS(lstat),
    ALWAYS(access),
    ALWAYS(readlink),
    ALWAYS(unlink),
    ALWAYS(rename),
    ALWAYS(mkdir),
    ALWAYS(link),
    ALWAYS(dup2),
    ALWAYS(poll),
    ALWAYS(select),
    ALWAYS(epoll_wait),
    ALWAYS(time),
    ALWAYS(arch_prctl),
    ALWAYS(getdents),
    ALWAYS(eventfd),
    NEVER(fork, EPERM),
    NEVER(vfork, EPERM),
    NEVER(chmod, EPERM),
    NEVER(chown, EPERM),
#endif

    /* what an honest library may try, and does without */
    NEVER(socket, EACCES),
    NEVER(socketpair, EACCES),
    NEVER(connect, EACCES),
    NEVER(bind, EACCES),
    NEVER(listen, EACCES),
    NEVER(accept, EACCES),
    NEVER(accept4, EACCES),
    NEVER(fchmodat, EPERM),
    NEVER(fchownat, EPERM),
    NEVER(fchown, EPERM),
    NEVER(truncate, EPERM),
    NEVER(setuid, EPERM),
    NEVER(setgid, EPERM),
    NEVER(setresuid, EPERM),
    NEVER(setresgid, EPERM),
};

/* Commands of NVIDIA's driver, as pairs of mask and value (filter.h): those for nvidiactl and the
 * GPUs have the letter F and both directions, and the sizes of their structs differ from version to
 * version; those for nvidia-uvm are plain numbers, but for the first and the last. */
#define COMMAND(request) 0xffffffffu, (request)
static const uint32_t driver_requests[] = {
    0xc000ff00u,         0xc0004600u,         0xffffff00u,         0,
    COMMAND(0x30000001), COMMAND(0x30000002), COMMAND(FIONREAD),   COMMAND(FIONBIO),
    COMMAND(SIOCOUTQ),   COMMAND(TCGETS),     COMMAND(TIOCGWINSZ),
};

/* The driver listens at a socket over which it would give its descriptors to other processes, and
 * does not start if it cannot. Nobody can connect to it or be connected to: see the worker's calls.
 * Only this type, because others can send without a connection. */
static const uint32_t socket_families[] = {AF_UNIX};
static const uint32_t socket_types[] = {SOCK_SEQPACKET | SOCK_CLOEXEC};
static const struct hed_filter_row socket_type = AMONG(socket, 1, socket_types, EACCES);

/* What NVIDIA's driver needs besides, as traced with driver 580 on an H200. It does without other
 * calls that it tries: symlink, connect (to MPS), sched_get_priority_max. */
static const struct hed_filter_row driver_calls[] = {
    {.number = SYS_ioctl,
     .test = HED_CALL_MASKED,
     .argument = 1,
     .values = driver_requests,
     .count = sizeof driver_requests / sizeof *driver_requests,
     .error = ENOTTY},
    ALWAYS(pipe2),
    ALWAYS(get_mempolicy),
    {.number = SYS_socket,
     .test = HED_CALL_AMONG,
     .argument = 0,
     .values = socket_families,
     .count = 1,
     .error = EACCES,
     .also = &socket_type},
    ALWAYS(bind),
    ALWAYS(listen),
};

/* No library calls these in a worker. */
static const struct hed_filter_row attacks[] = {
    KILLS(execve),
    KILLS(execveat),
    KILLS(ptrace),
    KILLS(process_vm_readv),
    KILLS(process_vm_writev),
    KILLS(kcmp),
    KILLS(tkill),
    KILLS(rt_sigqueueinfo),
    KILLS(rt_tgsigqueueinfo),
    KILLS(mount),
    KILLS(umount2),
    KILLS(pivot_root),
    KILLS(chroot),
    KILLS(unshare),
    KILLS(setns),
    KILLS(bpf),
    KILLS(userfaultfd),
    KILLS(perf_event_open),
    KILLS(keyctl),
    KILLS(add_key),
    KILLS(request_key),
    KILLS(init_module),
    KILLS(finit_module),
    KILLS(delete_module),
    KILLS(kexec_load),
    KILLS(reboot),
    KILLS(swapon),
    KILLS(swapoff),
    KILLS(settimeofday),
    KILLS(clock_settime),
    KILLS(open_by_handle_at),
    KILLS(name_to_handle_at),
    KILLS(mknodat),
    KILLS(personality),
    KILLS(quotactl),
    KILLS(acct),
    KILLS(syslog),
    KILLS(sethostname),
    KILLS(setdomainname),
#ifdef SYS_io_uring_setup
    KILLS(io_uring_setup),
    KILLS(io_uring_enter),
    KILLS(io_uring_register),
#endif
#ifdef SYS_pidfd_open
    KILLS(pidfd_open),
    KILLS(pidfd_send_signal),
    KILLS(pidfd_getfd),
#endif
#ifdef SYS_process_madvise
    KILLS(process_madvise),
#endif
#ifdef SYS_fsopen
    KILLS(fsopen),
    KILLS(fsconfig),
    KILLS(fsmount),
    KILLS(move_mount),
    KILLS(open_tree),
#endif
};

/* ---- the processes that compile kernels ------------------------------------------------------ */

/* A thread of this process, or a process as the C library forks it: pairs of mask and value. */
static const uint32_t clone_flags[] = {CLONE_THREAD, CLONE_THREAD, 0xffffffffu,
                                       CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD};
static const uint32_t forkserver_options[] = {PR_SET_NAME, PR_GET_NAME, PR_SET_PDEATHSIG};

/* What the fork server (kernel/forkserver/forkserver.h) needs besides: it forks compilers, waits
 * for them, and they give that up. It reads nothing that a client has sent. */
static const struct hed_filter_row forkserver_calls[] = {
    {.number = SYS_clone,
     .test = HED_CALL_MASKED,
     .argument = 0,
     .values = clone_flags,
     .count = sizeof clone_flags / sizeof *clone_flags},
    ALWAYS(wait4),
    ALWAYS(seccomp),
    ALWAYS(tgkill),
    ALWAYS(setitimer),
    AMONG(prctl, 0, forkserver_options, EPERM),
};

/* What a compiler needs besides: a limit of its own time. */
static const struct hed_filter_row compiler_calls[] = {ALWAYS(setitimer)};

int
hed_filter_forkserver(void)
{
    const struct hed_filter_list lists[] = {
        LIST(forkserver_calls), LIST(worker_calls), LIST(attacks), {0}};

    return hed_filter_apply(lists);
}

int
hed_filter_compiler(void)
{
    const struct hed_filter_list lists[] = {
        LIST(compiler_calls), LIST(worker_calls), LIST(attacks), {0}};

    return hed_filter_apply(lists);
}

/* ---- the step -------------------------------------------------------------------------------- */

int
hed_step_calls(const struct hed_sandbox *s, struct hed_why *why)
{
    static const struct hed_filter_list for_heddle[] = {LIST(worker_calls), LIST(attacks), {0}};
    /* The first row of a call counts, so the driver's come first. */
    static const struct hed_filter_list for_driver[] = {
        LIST(driver_calls), LIST(worker_calls), LIST(attacks), {0}};

    if (s->bridge)
        return hed_filter_bridge();
    return s->gate ? hed_filter_gate() : hed_filter_apply(s->driver ? for_driver : for_heddle);
}
