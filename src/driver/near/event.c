/* Events on this machine: the thread that runs the stream's work takes the time of a record. */
#include "driver/ipc/event.h"
#include "base/clock.h"
#include "driver/near/near.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

void
hed_near_event_reached(struct hed_event *e, uint64_t record)
{
    const uint64_t now = hed_now_ns();

    hed_lock(&e->lock);
    /* A node's time is more accurate than that of the record behind its graph. */
    if (record == 0 || (record == e->records && e->time == 0))
        e->time = now;
    hed_unlock(&e->lock);
}

static bool
is_event_reached(struct hed_event *e)
{
    const struct hed_point p = hed_event_point(e);
    const bool reached = hed_point_reached(p);

    if (p.stream)
        hed_stream_put(p.stream);
    return reached;
}

CUresult
hed_near_event_query(void *m, struct hed_event *e)
{
    if (e->shared && !hed_shared_event_is_reached(e->shared, hed_shared_event_last(e->shared)))
        return CUDA_ERROR_NOT_READY;
    return is_event_reached(e) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult
hed_near_event_wait(void *m, struct hed_event *e)
{
    const struct hed_point p = hed_event_point(e);

    if (p.stream) {
        (void)hed_near_point_wait(m, p);
        hed_stream_put(p.stream);
    }
    /* Another process may have recorded it since. */
    if (e->shared)
        return hed_shared_event_wait(e->shared, hed_shared_event_last(e->shared), e->ctx);
    return CUDA_SUCCESS;
}

/* The time at which the last record was reached; 0 if it has not been. */
static uint64_t
time_of_event(struct hed_event *e)
{
    /* The time is written before the point counts as reached. */
    const bool reached = is_event_reached(e);

    hed_lock(&e->lock);

    const uint64_t time = e->time;

    hed_unlock(&e->lock);
    return reached ? time : 0;
}

CUresult
hed_near_event_time(void *m, struct hed_event *begin, struct hed_event *end, float *ms)
{
    const uint64_t from = time_of_event(begin);
    const uint64_t to = time_of_event(end);

    if (!from || !to)
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(int64_t)(to - from) / 1e6);
    return CUDA_SUCCESS;
}
