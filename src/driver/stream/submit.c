/* Puts work on streams: into the graph that a stream captures, or on the machine. See work.h. */
#include "driver/graph/graph.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

/* The errors that CUDA reports before it accepts any work: the context's sticky error, or that
 * blocking streams are capturing. */
CUresult
hed_submit_allowed(struct hed_stream *s)
{
    const CUresult r = hed_context_error(s->ctx);

    if (r == CUDA_SUCCESS && s->is_legacy)
        return hed_capture_implicit(s->ctx);
    return r;
}

CUresult
hed_submit(struct hed_stream *s, struct hed_work *w)
{
    const CUresult r = hed_submit_allowed(s);
    void *m;

    if (r != CUDA_SUCCESS) {
        hed_work_free(w);
        return r;
    }
    /* Acquire: pairs with the release in hed_capture_join_locked(). */
    if (atomic_load_explicit(&s->capture, memory_order_acquire))
        return hed_capture_add(s, w);
    return hed_machine_of(s->ctx, &m)->submit(m, s, w, false);
}

CUresult
hed_submit_wait(struct hed_stream *s, struct hed_work *w)
{
    CUresult r = hed_submit_allowed(s);
    void *m;

    /* Acquire: as above. */
    if (r == CUDA_SUCCESS && atomic_load_explicit(&s->capture, memory_order_acquire))
        r = hed_capture_broken(s);
    if (r != CUDA_SUCCESS) {
        hed_work_free(w);
        return r;
    }
    return hed_machine_of(s->ctx, &m)->submit(m, s, w, true);
}
