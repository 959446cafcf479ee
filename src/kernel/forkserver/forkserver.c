/* Forks compilers, and tells how they died. See forkserver.h. */
#include "kernel/forkserver/forkserver.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/forkserver/message.h"

struct forkserver {
    const struct hed_forkserver *how;
    pid_t compilers[HED_FORKSERVER_SOCKETS]; /* by socket; 0: none */
    hed_forkserver_serve_fn serve;           /* NULL until the library is loaded */
    struct hed_why why;                      /* why it cannot be */
};

static void
on_child(int signal)
{
    (void)signal; /* it interrupts ppoll() */
}

/* Answers the request that waits at a socket, which no compiler can be given. */
static void
refuse_request(const struct forkserver *f, unsigned slot, int err, const char *why)
{
    struct hed_forkserver_answer a = {
        .magic = HED_FORKSERVER_MAGIC, .kind = HED_FORKSERVER_DONE, .err = err, .leaves = 1};
    struct hed_forkserver_request r = {0};
    int fd = -1;

    /* Only its head is wanted. */
    const long n = hed_forkserver_receive(f->how->sockets[slot], &r, sizeof r, MSG_DONTWAIT, &fd);

    if (fd >= 0)
        (void)close(fd);
    if (n == 0 || n == -EAGAIN)
        return;
    a.number = r.number;
    hed_why_set(&a.why, "%s", why);
    (void)hed_forkserver_send(f->how->sockets[slot], &a, sizeof a, NULL, 0, -1);
}

/* All compilers are forks of a process that has loaded LLVM already. */
static bool
load_compiler(struct forkserver *f)
{
    void *library;

    if (f->serve)
        return true;
    library = dlopen(f->how->library, RTLD_NOW | RTLD_LOCAL);
    f->serve = library ? (hed_forkserver_serve_fn)dlsym(library, HED_FORKSERVER_SERVE) : NULL;
    if (!f->serve) {
        const char *text = dlerror();

        hed_why_set(&f->why, "the PTX compiler cannot be loaded: %s",
                    text ? text : "no reason given");
    }
    return f->serve != NULL;
}

static _Noreturn void
be_compiler(const struct forkserver *f, unsigned slot, pid_t forkserver)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;

    (void)prctl(PR_SET_NAME, "heddle-compiler");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != forkserver)
        _exit(1);
    for (unsigned i = 0; i < f->how->count; i++)
        if (i != slot)
            (void)close(f->how->sockets[i]);
    (void)sigaction(SIGCHLD, &plain, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (f->how->confine && f->how->confine() != 0)
        _exit(1);
    _exit(f->serve(f->how->sockets[slot]) == 0 ? 0 : 1);
}

/* A request has come to a socket without a compiler. */
static void
start_compiler(struct forkserver *f, unsigned slot)
{
    const pid_t own = getpid();
    pid_t pid;

    if (!load_compiler(f)) {
        refuse_request(f, slot, HED_ENOTFOUND, f->why.text);
        return;
    }
    pid = fork();
    if (pid == 0)
        be_compiler(f, slot, own);
    if (pid < 0) {
        struct hed_why why;

        hed_why_set(&why, "cannot start a process for the compiler: %s", strerror(errno));
        refuse_request(f, slot, HED_ENOMEM, why.text);
        return;
    }
    f->compilers[slot] = pid;
}

/* A compiler that ended well has answered its last request. */
static void
report_death(const struct forkserver *f, unsigned slot, int status, const struct rusage *used)
{
    struct hed_forkserver_answer a = {.magic = HED_FORKSERVER_MAGIC, .kind = HED_FORKSERVER_DIED};

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    a.signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
    a.peak = (uint64_t)used->ru_maxrss * 1024;
    (void)hed_forkserver_send(f->how->sockets[slot], &a, sizeof a, NULL, 0, -1);
}

static void
reap_compilers(struct forkserver *f)
{
    struct rusage used = {0};
    int status = 0;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0)
        for (unsigned i = 0; i < f->how->count; i++)
            if (f->compilers[i] == pid) {
                f->compilers[i] = 0;
                report_death(f, i, status, &used);
            }
}

_Noreturn void
hed_forkserver_run(const struct hed_forkserver *how)
{
    struct forkserver f = {.how = how};
    const struct sigaction child = {.sa_handler = on_child};
    struct pollfd sockets[HED_FORKSERVER_SOCKETS];
    sigset_t blocked, open;

    (void)sigemptyset(&open);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGCHLD);
    /* SIGCHLD comes only inside of ppoll(), so none is missed. */
    if (how->count == 0 || how->count > HED_FORKSERVER_SOCKETS ||
        sigprocmask(SIG_BLOCK, &blocked, NULL) != 0 || sigaction(SIGCHLD, &child, NULL) != 0)
        _exit(1);
    for (;;) {
        reap_compilers(&f);
        for (unsigned i = 0; i < how->count; i++)
            sockets[i] = (struct pollfd){.fd = how->sockets[i],
                                         .events = POLLRDHUP | (f.compilers[i] ? 0 : POLLIN)};

        const int n = ppoll(sockets, how->count, NULL, &open);

        if (n < 0 && errno != EINTR)
            _exit(1);
        for (unsigned i = 0; n > 0 && i < how->count; i++) {
            if (sockets[i].revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL))
                _exit(0);
            if ((sockets[i].revents & POLLIN) && !f.compilers[i])
                start_compiler(&f, i);
        }
    }
}
