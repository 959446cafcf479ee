/* Attacks on other processes: the listener, and the workers of other clients. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attack/attack.h"

static bool
signals_listener(void)
{
    return kill(target.listener, SIGURG) == 0; /* a signal that is ignored */
}

static bool
signals_worker(void)
{
    return kill(target.worker, SIGURG) == 0;
}

static bool
signals_thread(void)
{
    return syscall(SYS_tkill, target.listener, SIGURG) == 0;
}

static bool
signals_by_descriptor(void)
{
    const int fd = (int)syscall(SYS_pidfd_open, target.listener, 0);

    return fd >= 0 && syscall(SYS_pidfd_send_signal, fd, SIGURG, NULL, 0) == 0;
}

static bool
signals_by_descriptor_of_file(void)
{
    int ends[2];

    /* A pipe tells its owner by a signal that there is data. */
    return pipe(ends) == 0 && fcntl(ends[0], F_SETOWN, target.listener) == 0;
}

static bool
traces_listener(void)
{
    return ptrace(PTRACE_SEIZE, target.listener, NULL, NULL) == 0;
}

static bool
reads_memory(void)
{
    char path[64];
    char byte;

    (void)snprintf(path, sizeof path, "/proc/%d/mem", (int)target.listener);

    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && pread(fd, &byte, 1, (off_t)(uintptr_t)target.secret) == 1;
}

static bool
reads_environment(void)
{
    char path[64];
    char byte;

    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)target.listener);

    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, &byte, 1) == 1;
}

static bool
reads_memory_by_call(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {target.secret, 1};

    return process_vm_readv(target.listener, &here, 1, &there, 1, 0) == 1;
}

static bool
takes_descriptor(void)
{
    const int fd = (int)syscall(SYS_pidfd_open, target.listener, 0);

    return fd >= 0 && syscall(SYS_pidfd_getfd, fd, 2, 0) >= 0;
}

static bool
slows_listener(void)
{
    return setpriority(PRIO_PROCESS, (id_t)target.listener, 19) == 0;
}

static bool
limits_listener(void)
{
    struct rlimit r;

    return prlimit(target.listener, RLIMIT_NOFILE, NULL, &r) == 0;
}

static bool
pins_listener(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 &&
           sched_setaffinity(target.listener, sizeof set, &set) == 0;
}

/* /bin/true ends with the status of a success. */
static bool
executes(void)
{
    (void)execl("/bin/true", "true", NULL);
    return false;
}

static bool
executes_from_memory(void)
{
    const int from = open("/bin/true", O_RDONLY | O_CLOEXEC);
    const int fd = memfd_create("x", 0);
    char piece[4096];
    char name[] = "true";
    char *const words[] = {name, NULL};
    ssize_t n;

    /* In the sandbox the file cannot be read; then a program of no use has to do. */
    while ((n = read(from, piece, sizeof piece)) > 0)
        if (write(fd, piece, (size_t)n) != n)
            return false;
    (void)fexecve(fd, words, environ);
    return false;
}

static bool
forks(void)
{
    const pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return pid > 0;
}

static bool
forks_without_library(void)
{
    const long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        _exit(0);
    return pid > 0;
}

static bool
can_dump_itself(void)
{
    struct rlimit r = {1 << 20, 1 << 20};

    return setrlimit(RLIMIT_CORE, &r) == 0;
}

/* attack.c has put a file of the server there. */
static bool
reads_standard_input(void)
{
    char byte;

    return pread(STDIN_FILENO, &byte, 1, 0) == 1;
}

static bool
knows_secret_variable(void)
{
    return getenv("HEDDLE_TLS_TOKEN") != NULL;
}

const struct attack process_attacks[] = {
    {"signals_listener", signals_listener, ANYBODY, true},
    {"signals_worker", signals_worker, ROOT, true},
    {"signals_thread", signals_thread, ANYBODY, true},
    {"signals_by_descriptor", signals_by_descriptor, KERNEL, true},
    {"signals_by_descriptor_of_file", signals_by_descriptor_of_file, ANYBODY, false},
    {"traces_listener", traces_listener, ANYBODY, true},
    {"reads_memory", reads_memory, ANYBODY, true},
    {"reads_environment", reads_environment, ANYBODY, true},
    {"reads_memory_by_call", reads_memory_by_call, ANYBODY, true},
    {"takes_descriptor", takes_descriptor, KERNEL, true},
    {"slows_listener", slows_listener, ANYBODY, false},
    {"limits_listener", limits_listener, ANYBODY, false},
    {"pins_listener", pins_listener, ANYBODY, false},
    {"executes", executes, ANYBODY, true},
    {"executes_from_memory", executes_from_memory, ANYBODY, false},
    {"forks", forks, ANYBODY, false},
    {"forks_without_library", forks_without_library, ANYBODY, false},
    {"can_dump_itself", can_dump_itself, ANYBODY, true},
    {"reads_standard_input", reads_standard_input, ANYBODY, true},
    {"knows_secret_variable", knows_secret_variable, ANYBODY, true},
    {0},
};
