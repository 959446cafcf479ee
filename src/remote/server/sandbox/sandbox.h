/* The sandbox around a worker: what it gives up before it parses the first byte of its client. A
 * client's kernel may be native code in the worker, so whatever the worker may do, the client may
 * do. See docs/security.md.
 *
 *   listener ── hed_sandbox_probe() at start: which steps work here?
 *       └── hed_sandbox_fork() ──> worker: loads what it needs ── hed_sandbox_enter() ── serves
 *
 * Invariants:
 * 1. A worker that cannot take a step that the probe could take ends. So no worker has less than
 *    the server announced.
 * 2. hed_sandbox_enter() is called while the process has one thread: Landlock and namespaces apply
 *    to the calling thread and to those that it creates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hed_why;

enum hed_sandbox_mode { HED_SANDBOX_AUTO, HED_SANDBOX_REQUIRE, HED_SANDBOX_OFF };

/* The steps in the order in which they are taken: name, function, and whether `require` insists on
 * it. The others are a second line of defence: what they prevent, calls and files prevent too.
 *
 *   step         file          takes away
 *   environment  process.c     variables that the worker does not need
 *   session      process.c     the terminal, standard input, the current folder
 *   cgroup       group.c       memory, threads and processors without end (a control group)
 *   processes    process.c     the sight of other processes (a PID namespace, made by the fork)
 *   namespaces   spaces.c      the network, System V IPC, the host's name
 *   keyring      process.c     the keys of the server's session
 *   root         root.c        the sight of all files but those that it needs (a root of its own)
 *   user         user.c        the server's user and its groups
 *   privileges   user.c        capabilities, setuid programs, core dumps, tracing
 *   limits       rlimits.c     threads, descriptors, core files, private memory without end
 *   files        files.c       the file system, but for what it needs (Landlock)
 *   calls        calls.c       system calls that it does not need (seccomp)
 */
#define HED_SANDBOX_STEPS(X)          \
    X(ENVIRONMENT, environment, true) \
    X(SESSION, session, true)         \
    X(CGROUP, cgroup, false)          \
    X(PROCESSES, processes, false)    \
    X(NAMESPACES, namespaces, false)  \
    X(KEYRING, keyring, false)        \
    X(ROOT, root, false)              \
    X(USER, user, true)               \
    X(PRIVILEGES, privileges, true)   \
    X(LIMITS, limits, true)           \
    X(FILES, files, true)             \
    X(CALLS, calls, true)

enum hed_sandbox_step {
#define HED_SANDBOX_ENUM(token, name, needed) HED_STEP_##token,
    HED_SANDBOX_STEPS(HED_SANDBOX_ENUM)
#undef HED_SANDBOX_ENUM
        HED_STEP_COUNT
};

#define HED_SANDBOX_FOLDERS 2

struct hed_sandbox {
    uint32_t steps;                   /* a bit for each step that is taken */
    bool driver;                      /* NVIDIA's driver runs in the worker, which needs more */
    bool gate;                        /* it is for a process that does TLS handshakes */
    bool bridge;                      /* it is for the device of a QEMU guest */
    uid_t uid;                        /* the worker's own user; 0: it keeps the server's */
    gid_t gid;                        /* the group of all workers; used if uid is not 0 */
    uint32_t threads;                 /* the most that it may have */
    uint64_t memory;                  /* bytes of private memory; 0 for no limit */
    const char *group;                /* folder of its control group, or NULL */
    const char *libraries;            /* heddle's folder of libraries */
    char *variable;                   /* that its environment gets, "NAME=value", or NULL */
    int folders[HED_SANDBOX_FOLDERS]; /* that it may write to: descriptors, or -1 */
    /* Called before the last step, `calls`, is taken: the last chance to fork. A process that is
     * forked then has all other steps behind it. May be NULL. */
    int (*before_calls)(const struct hed_sandbox *s, struct hed_why *why);
};

/* The last step of the two kinds of process that compile a worker's kernels: as `calls`, and the
 * fork server may fork. 0 or a negative errno. */
int hed_filter_forkserver(void);
int hed_filter_compiler(void);

/* The steps that make sense for this server: all, but for another user if it is not root. */
uint32_t hed_sandbox_wanted(void);
/* Those that `require` insists on. */
uint32_t hed_sandbox_needed(void);
const char *hed_sandbox_step_name(enum hed_sandbox_step step);

/* Finds out which of s->steps work on this machine, in processes of its own, and leaves only those
 * in s->steps. `missing`, one per step, gets the reason for each of the others. Only for a process
 * with one thread. HED_E... if it could not be found out. */
int hed_sandbox_probe(struct hed_sandbox *s, struct hed_why *missing);

/* As fork(2). The child is the first process of a PID namespace if s->steps has that. */
pid_t hed_sandbox_fork(const struct hed_sandbox *s);

/* Takes all of s->steps, in the new process. After an error the process must end. Afterwards the
 * process gets SIGKILL when its parent dies; the caller looks whether it has died before. */
int hed_sandbox_enter(const struct hed_sandbox *s, struct hed_why *why);
