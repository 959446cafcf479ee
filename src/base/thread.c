/* See thread.h. */
#include "base/thread.h"

#include <signal.h>

#include "base/err.h"

static void
set_of_blocked_signals(bool faults, sigset_t *out)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

    (void)sigfillset(out);
    for (size_t i = 0; faults && i < sizeof own / sizeof own[0]; i++)
        (void)sigdelset(out, own[i]);
}

int
hed_thread_start(const struct hed_thread_how *how, void *(*fn)(void *), void *arg, pthread_t *out)
{
    sigset_t blocked, before;
    pthread_attr_t attr;
    int err;

    set_of_blocked_signals(how && how->faults, &blocked);
    (void)pthread_attr_init(&attr);
    if (how && how->stack)
        (void)pthread_attr_setstacksize(&attr, how->stack);
    /* A thread begins with the signals blocked that the one which starts it has. */
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    err = pthread_create(out, &attr, fn, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (err)
        return hed_err_from_errno(err);
    if (how && how->name)
        (void)pthread_setname_np(*out, how->name);
    return 0;
}

int
hed_thread_detached(const struct hed_thread_how *how, void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    const int err = hed_thread_start(how, fn, arg, &thread);

    if (!err)
        (void)pthread_detach(thread);
    return err;
}

int
hed_thread_wait(const struct hed_thread_how *how, void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    const int err = hed_thread_start(how, fn, arg, &thread);

    if (!err)
        (void)pthread_join(thread, NULL);
    return err;
}
