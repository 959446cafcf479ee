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

#include "kernel/cache/cache.h"
#include "kernel/forkserver/message.h"
#include "kernel/forkserver/room.h"

static void
on_child(int signal)
{
    (void)signal; /* it interrupts ppoll() */
}

/* Answers the request that waits at a socket, which no compiler can be given. */
static void
refuse_request(const struct hed_forkserver_state *f, unsigned slot, int err, const char *why)
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
bool
hed_forkserver_load(struct hed_forkserver_state *f)
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

/* Closes the other sockets, the list, its texts, and what holds a turn: a compiler needs none. */
static void
keep_only(int socket)
{
    for (int fd = STDERR_FILENO + 1, most = (int)sysconf(_SC_OPEN_MAX); fd < most; fd++)
        if (fd != socket)
            (void)close(fd);
}

static _Noreturn void
be_compiler(const struct hed_forkserver_state *f, int socket, pid_t forkserver)
{
    static const int handled[] = {SIGCHLD, SIGTERM, SIGINT};
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;

    (void)prctl(PR_SET_NAME, "heddle-compiler");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != forkserver)
        _exit(1);
    if (f->after)
        keep_only(socket);
    for (unsigned i = 0; !f->after && i < f->how->count; i++)
        if (f->how->sockets[i] != socket)
            (void)close(f->how->sockets[i]);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        (void)sigaction(handled[i], &plain, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (f->how->confine && f->how->confine() != 0)
        _exit(1);
    _exit(f->serve(socket, f->after ? &f->keep : NULL) == 0 ? 0 : 1);
}

pid_t
hed_forkserver_fork(const struct hed_forkserver_state *f, int socket)
{
    const pid_t own = getpid(), pid = fork();

    if (pid == 0)
        be_compiler(f, socket, own);
    return pid < 0 ? -errno : pid;
}

/* A request has come to a socket without a compiler. */
static void
start_compiler(struct hed_forkserver_state *f, unsigned slot)
{
    pid_t pid;

    if (!hed_forkserver_load(f)) {
        refuse_request(f, slot, HED_ENOTFOUND, f->why.text);
        return;
    }
    pid = hed_forkserver_fork(f, f->how->sockets[slot]);
    if (pid < 0) {
        struct hed_why why;

        hed_why_set(&why, "cannot start a process for the compiler: %s", strerror(-pid));
        refuse_request(f, slot, HED_ENOMEM, why.text);
        return;
    }
    f->compilers[slot] = pid;
}

/* A compiler that ended well has answered its last request. */
static void
report_death(const struct hed_forkserver_state *f, unsigned slot, int status,
             const struct rusage *used)
{
    struct hed_forkserver_answer a = {.magic = HED_FORKSERVER_MAGIC, .kind = HED_FORKSERVER_DIED};

    if (f->is_over || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return;
    a.signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0;
    a.peak = (uint64_t)used->ru_maxrss * 1024;
    (void)hed_forkserver_send(f->how->sockets[slot], &a, sizeof a, NULL, 0, -1);
}

void
hed_forkserver_reap(struct hed_forkserver_state *f)
{
    struct rusage used = {0};
    int status = 0;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0)
        for (unsigned i = 0; i < HED_FORKSERVER_SOCKETS; i++)
            if (f->compilers[i] == pid) {
                f->compilers[i] = 0;
                report_death(f, i, status, &used);
            }
}

static void
keep_object(const void *arg, const struct hed_forkserver_request *r,
            const struct hed_forkserver_texts *texts, const void *object, size_t size,
            uint32_t compile_us)
{
    const struct hed_forkserver_after *how = arg;
    const struct hed_cache_about about = {.name = texts->name,
                                          .features = texts->features,
                                          .version = HED_VERSION,
                                          .compiler = how->compiler,
                                          .abi = r->abi,
                                          .rows = r->rows,
                                          .compile_us = compile_us};
    const struct hed_cache_key key = hed_after_key(how, r, texts);

    hed_cache_put(how->cache, &key, &about, object, size);
}

/* The program is gone. */
static _Noreturn void
end_forkserver(struct hed_forkserver_state *f)
{
    if (f->after)
        hed_after_run(f->after, f);
    _exit(0);
}

_Noreturn void
hed_forkserver_run(const struct hed_forkserver *how)
{
    struct hed_forkserver_state f = {.how = how};
    const struct sigaction child = {.sa_handler = on_child};
    struct pollfd sockets[HED_FORKSERVER_SOCKETS + 2];
    const unsigned count = how->count;
    sigset_t blocked, open;

    (void)sigemptyset(&open);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGCHLD);
    /* SIGCHLD comes only inside of ppoll(), so none is missed. */
    if (how->count == 0 || how->count > HED_FORKSERVER_SOCKETS ||
        sigprocmask(SIG_BLOCK, &blocked, NULL) != 0 || sigaction(SIGCHLD, &child, NULL) != 0)
        _exit(1);
    if (how->after)
        f.after = hed_after_create(how->after);
    if (f.after)
        f.keep = (struct hed_forkserver_keep){.keep = keep_object, .arg = how->after};
    for (;;) {
        hed_forkserver_reap(&f);
        for (unsigned i = 0; i < count; i++)
            sockets[i] = (struct pollfd){.fd = how->sockets[i],
                                         .events = POLLRDHUP | (f.compilers[i] ? 0 : POLLIN)};

        /* Without a list, ppoll() ignores it. */
        sockets[count] =
            (struct pollfd){.fd = f.after ? how->after->list : -1, .events = POLLIN | POLLRDHUP};

        sockets[count + 1] =
            (struct pollfd){.fd = f.after ? how->after->process : -1, .events = POLLIN};

        const int n = ppoll(sockets, count + 2, NULL, &open);

        if (n < 0 && errno != EINTR)
            _exit(1);
        if (n > 0 && (sockets[count].revents & POLLIN))
            hed_after_read(f.after);
        if (n > 0 && (sockets[count].revents & (POLLHUP | POLLRDHUP | POLLERR)))
            end_forkserver(&f);
        if (n > 0 && sockets[count + 1].revents)
            end_forkserver(&f);
        for (unsigned i = 0; n > 0 && i < count; i++) {
            if (sockets[i].revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL))
                end_forkserver(&f);
            if ((sockets[i].revents & POLLIN) && !f.compilers[i])
                start_compiler(&f, i);
        }
    }
}
