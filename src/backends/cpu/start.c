/* Starts a process behind the program's back. See start.h.
 *
 *   program ── clone: shares memory, no SIGCHLD ──> between ── clone ──> the new process ── execve
 *      waits for it (__WCLONE)                       ends at once          belongs to init
 *
 * A process made by fork() alone would be seen by a program that waits for any child, and it would
 * copy the page tables of a large program. What shares the program's memory until execve() may call
 * almost nothing, as after vfork().
 *
 * ThreadSanitizer keeps what it knows of a process in that memory, and one process only can write
 * it: with it, the new processes have a copy, and share only struct start.
 */
#include "backends/cpu/start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitize.h"

#define STACK ((size_t)64 << 10) /* bytes, for each of the two */
#define VARIABLES_MAX 16
#define FIRST 3 /* the first descriptor that is not a standard one */
#define SHARE_MEMORY ((HED_TSAN ? 0 : CLONE_VM) | CLONE_VFORK)

struct start {
    char stacks[2][STACK]; /* first, so that they overflow into nothing else here */
    const char *path;
    char *const *arguments;
    char *variables[VARIABLES_MAX + 1];
    int descriptors[HED_START_DESCRIPTORS];
    unsigned count;
    int error; /* errno of what failed; the new processes write it */
};

/* Where libraries are searched, and what they are told, is the program's affair. */
static void
choose_variables(struct start *s)
{
    static const char *const kept[] = {"LANG=",
                                       "LC_",
                                       "TZ=",
                                       "ASAN_OPTIONS",
                                       "TSAN_OPTIONS=",
                                       "UBSAN_OPTIONS",
                                       "LLVM_PROFILE_FILE="};
    unsigned n = 0;

    for (char **at = environ; at && *at && n < VARIABLES_MAX; at++)
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            if (strncmp(*at, kept[i], strlen(kept[i])) == 0) {
                s->variables[n++] = *at;
                break;
            }
    s->variables[n] = NULL;
}

/* Descriptors of the new process, and nothing else. Those that are given lie above where they go
 * to, so none is overwritten before it is used. */
static bool
arrange_descriptors(const struct start *s)
{
    const int nothing = open("/dev/null", O_RDWR);

    if (nothing < 0)
        return false;
    for (int i = 0; i < FIRST; i++)
        if (dup2(nothing, i) < 0)
            return false;
    for (unsigned i = 0; i < s->count; i++)
        if (dup2(s->descriptors[i], FIRST + (int)i) < 0)
            return false;
    if (syscall(SYS_close_range, FIRST + s->count, ~0u, 0) != 0) {
        const long most = sysconf(_SC_OPEN_MAX);

        for (long i = FIRST + (long)s->count; i < (most > 0 && most < 65536 ? most : 65536); i++)
            (void)close((int)i);
    }
    return true;
}

static int
be_new_process(void *arg)
{
    struct start *s = arg;
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)sigaction(i, &plain, NULL);
    (void)setsid();
    if (chdir("/") == 0 && arrange_descriptors(s)) {
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)execve(s->path, s->arguments, s->variables);
    }
    s->error = errno;
    _exit(1);
}

static int
be_between(void *arg)
{
    struct start *s = arg;

    if (clone(be_new_process, s->stacks[0] + STACK, SHARE_MEMORY | SIGCHLD, s) < 0)
        s->error = errno;
    _exit(0);
}

/* Copies of the descriptors that are not among the first ones. */
static int
copy_descriptors(struct start *s, const int *descriptors, unsigned count)
{
    for (s->count = 0; s->count < count; s->count++) {
        s->descriptors[s->count] =
            fcntl(descriptors[s->count], F_DUPFD_CLOEXEC, FIRST + HED_START_DESCRIPTORS);
        if (s->descriptors[s->count] < 0)
            return -errno;
    }
    return 0;
}

static void
clone_and_wait(struct start *s)
{
    sigset_t all, old;
    pid_t pid;

    /* The program's handlers must not run in processes that share its memory. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    /* Signal 0: nobody is told when it ends. */
    pid = clone(be_between, s->stacks[1] + STACK, SHARE_MEMORY, s);
    if (pid < 0)
        s->error = errno;
    while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int
hed_start_process(const char *path, char *const *arguments, const int *descriptors, unsigned count)
{
    struct start *s;
    int err;

    if (count > HED_START_DESCRIPTORS)
        return -EINVAL;
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
             (HED_TSAN ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (s == MAP_FAILED)
        return -errno;
    s->path = path;
    s->arguments = arguments;
    choose_variables(s);
    err = copy_descriptors(s, descriptors, count);
    if (!err) {
        clone_and_wait(s);
        err = -s->error;
    }
    for (unsigned i = 0; i < s->count; i++)
        (void)close(s->descriptors[i]);
    (void)munmap(s, sizeof *s);
    return err;
}
