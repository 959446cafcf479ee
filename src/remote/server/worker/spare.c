/* A spare: a worker that is ready before its client comes. See start.h.
 *
 *   fork ── sandbox ── backend, devices, a primary context ── ready ── waits ── client ── serves
 *           (listener)             (here)                                (worker.c)
 *
 * What a spare has done is what every worker does for its client, only earlier, so the client finds
 * the same. It depends on the server's options only; when they change, the listener ends its
 * spares.
 *
 * A new worker of a server that has spares begins in the same order (hed_worker_start.warm). For a
 * driver chooses addresses as it goes, and a program that goes from one worker to another must find
 * its variables where they were.
 *
 * The primary context is a guess. If the client's first context is that of the same device, with
 * the same flags, then it finds that context made. Otherwise the context is given up first, so that
 * it neither takes memory nor is found in another state than the client expects.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "remote/server/status.h"
#include "remote/server/worker/worker.h"

/* Most programs use the first device. Each further context would take as much time and memory. */
#define WARM_DEVICE 0

/* Relaxed: whoever takes the reference gives it up, and nothing else depends on it. */
static void
give_up_context(struct hed_worker *w)
{
    if (atomic_exchange_explicit(&w->warm, false, memory_order_relaxed))
        (void)hed_worker_do(w, cuDevicePrimaryCtxRelease_v2, .dev = WARM_DEVICE);
}

/* ---- before the client comes ----------------------------------------------------------------- */

/* For tests, in debug builds only. */
static void
fail_for_test(void)
{
#ifdef HED_DEBUG
    if (secure_getenv("HED_TEST_SPARE"))
        _exit(3);
#endif
}

/* In the other compute modes, a context keeps all other processes from having one. */
static bool
may_hold_context(const struct hed_worker *w)
{
    return w->device_count > WARM_DEVICE &&
           w->described[WARM_DEVICE].attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_MODE] ==
               CU_COMPUTEMODE_DEFAULT;
}

/* Uses the context. What the driver leaves for the first use is done then, and it is found out if
 * the context has failed, which may happen to it while the spare waits. */
static CUresult
touch_context(struct hed_worker *w)
{
    CUresult r = hed_worker_do(w, cuCtxSetCurrent, .ctx = w->warm_context);

    if (r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuCtxSynchronize, 0);
    (void)hed_worker_do(w, cuCtxSetCurrent, .ctx = NULL);
    return r;
}

int
hed_worker_warm_up(struct hed_worker *w, struct hed_why *why)
{
    int err = hed_worker_print_init(w, why);

    if (!err)
        err = hed_worker_start_backend(w, why);
    if (!err)
        err = hed_worker_find_devices(w);
    if (err || !may_hold_context(w))
        return err;
    /* If it fails, the client will be told when it asks for it itself. */
    if (hed_worker_do(w, cuDevicePrimaryCtxRetain, .pctx = &w->warm_context, .dev = WARM_DEVICE) !=
        CUDA_SUCCESS)
        return 0;
    (void)touch_context(w);
    /* Relaxed: there is one thread. */
    atomic_store_explicit(&w->warm, true, memory_order_relaxed);
    return 0;
}

/* The client has come. A context that has failed meanwhile is not for it. */
static void
check_context(struct hed_worker *w)
{
    const CUresult r = atomic_load_explicit(&w->warm, memory_order_relaxed) ? touch_context(w) : 0;

    if (r == CUDA_SUCCESS)
        return;
    hed_warn(SERVER, "the context of a spare worker has failed with error %d: another is made",
             (int)r);
    /* A reset does not take the reference back, and the last reference may not end what failed. */
    give_up_context(w);
    (void)hed_worker_do(w, cuDevicePrimaryCtxReset_v2, .dev = WARM_DEVICE);
}

/* Waits for the packet with which the listener gives the worker its client. Without a listener the
 * process is killed, or the socket ends. */
static int
await_client(struct hed_worker_start *start)
{
    static struct hed_worker_client client; /* as long as the process */
    struct pollfd p = {.fd = start->control, .events = POLLIN};
    int err;

    do
        err = poll(&p, 1, -1) > 0 ? hed_fd_take(p.fd, &start->conn, 1, &client, sizeof client)
                                  : HED_ETIME;
    while (err == HED_ETIME);
    start->link = client.link;
    start->state = &client.state;
    start->hello = &client.hello;
    start->peer = client.peer;
    start->client_pid = client.client_pid;
    start->client_uid = client.client_uid;
    start->offers = client.offers;
    return err;
}

int
hed_worker_spare(struct hed_worker_start *start)
{
    struct hed_worker *w = hed_worker_begin(start);
    struct hed_why why = {""};
    int err = w ? 0 : HED_ENOMEM;

    fail_for_test();
    if (!err)
        err = hed_worker_warm_up(w, &why);
    if (err) {
        hed_warn(SERVER, "a spare worker did not start: %s",
                 why.text[0] ? why.text : hed_err_text(err));
        return err;
    }
    /* Release: pairs with the acquire in hed_spare_take(), though nothing else is read for it. */
    if (start->status)
        atomic_store_explicit(&start->status->ready, 1, memory_order_release);
    err = await_client(start);
    if (err)
        return err;
    (void)prctl(PR_SET_NAME, "heddled-worker");
    check_context(w);
    return hed_worker_serve(w);
}

/* ---- the client's first context -------------------------------------------------------------- */

/* Is the call about the device that the spare has a context of? */
static bool
is_of_warm_device(const struct hed_call_info *info, const void *args)
{
    CUdevice device = -1;

    if (info->about >= 0)
        memcpy(&device, (const char *)args + info->about, sizeof device);
    return device == WARM_DEVICE;
}

void
hed_warm_before(struct hed_worker *w, const struct hed_msg *m, bool primary, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[m->call];

    if (!atomic_load_explicit(&w->warm, memory_order_relaxed))
        return;
    /* What is set without a context are the flags of a primary context. */
    if ((info->does == HED_DOES_SET && m->context == 0) ||
        (info->does == HED_DOES_BEGIN_CONTEXT && !(primary && is_of_warm_device(info, args))))
        give_up_context(w);
}

void
hed_warm_after(struct hed_worker *w, const struct hed_msg *m)
{
    if (atomic_load_explicit(&w->warm, memory_order_relaxed) &&
        hed_cuda_info[m->call].does == HED_DOES_BEGIN_CONTEXT)
        give_up_context(w);
}
