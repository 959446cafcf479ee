/* The client's contexts: which is current on a channel's thread, which have failed, and what the
 * others lose when one ends. See worker.h.
 *
 * Host memory is registered in the context that was current at that time, and the registration ends
 * with it. The client thinks of host memory as the session's, and of device memory that could not
 * be mapped as mapped. So both are mended in the next context that is current (hed_memory_restore).
 */
#include "base/err.h"
#include "base/log.h"
#include "remote/server/status.h"
#include "remote/server/worker/worker.h"

/* After these errors a context does nothing that was put on its streams. After others it does. */
static bool
is_end_of_work(CUresult error)
{
    switch (error) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

void
hed_worker_heard(struct hed_worker *w, uint64_t context, CUresult result)
{
    if (result != CUDA_SUCCESS && is_end_of_work(result))
        hed_shared_events_context_ended(w, context);
}

void
hed_worker_failed(struct hed_worker *w, uint64_t context, CUresult error)
{
    if (error == CUDA_SUCCESS)
        return;
    hed_worker_heard(w, context, error);
    hed_lock(&w->lock);

    /* Relaxed: the lock orders writers. */
    const bool first = atomic_load_explicit(&w->failed, memory_order_relaxed) == 0;

    if (first) {
        w->failed_context = context;
        /* Release: pairs with the acquire in fill_answer(). */
        atomic_store_explicit(&w->failed, (int)error, memory_order_release);
        if (w->start->status)
            w->start->status->failed = (uint32_t)error;
    }
    hed_unlock(&w->lock);
    if (first)
        hed_worker_alert(w);
}

void
hed_worker_alert(struct hed_worker *w)
{
    if (w->slots) /* relaxed: it only makes the client ask */
        atomic_fetch_add_explicit(&w->slots[HED_WORKER_FAILURES], 1, memory_order_relaxed);
}

CUresult
hed_worker_explain(struct hed_worker *w, uint64_t context, CUresult r)
{
    /* Acquire: as in fill_answer(). */
    const int failed =
        r == CUDA_ERROR_INVALID_HANDLE ? atomic_load_explicit(&w->failed, memory_order_acquire) : 0;

    return failed && w->failed_context == context ? (CUresult)failed : r;
}

int
hed_worker_stream(struct hed_worker_channel *ch, const struct hed_msg *m, CUstream *out)
{
    uint64_t real;
    const int err = hed_name_fits(m->stream, "stream")
                        ? hed_name_real(ch->worker->names, m->stream, &real)
                        : HED_ENOTFOUND;

    if (!err)
        *out = (CUstream)(uintptr_t)real;
    return err;
}

static int
make_context_current(struct hed_worker_channel *ch, uint64_t name)
{
    uint64_t real;

    if (!hed_name_fits(name, "context") || hed_name_real(ch->worker->names, name, &real) != 0)
        return HED_ENOTFOUND;

    const CUresult r =
        hed_worker_do(ch->worker, cuCtxSetCurrent, .ctx = (CUcontext)(uintptr_t)real);

    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        return HED_ENOMEM;
    if (r != CUDA_SUCCESS)
        hed_warn(SERVER, "cannot make a context current: error %d", (int)r);
    ch->context = name;
    return 0;
}

int
hed_worker_context(struct hed_worker_channel *ch, uint64_t name)
{
    struct hed_worker *w = ch->worker;
    const int err = name == ch->context ? 0 : make_context_current(ch, name);

    if (!err && name && w->lacks_memory && hed_memory_restore(w, name))
        w->lacks_memory = false;
    return err;
}

void
hed_worker_context_ended(struct hed_worker *w, uint64_t context)
{
    /* Relaxed: channels that use a context have taken a later ticket. */
    atomic_fetch_add_explicit(&w->resets, 1, memory_order_relaxed);
    w->lacks_memory = true;
    hed_progress_context_ended(w, context);
    hed_shared_events_context_ended(w, context);
    hed_lock(&w->lock);
    if (w->failed_context == context) /* release: as above */
        atomic_store_explicit(&w->failed, 0, memory_order_release);
    hed_unlock(&w->lock);
}
