/* The stand-in of peer.h. */
#include "unit/remote/peer.h"

static const struct peer *peer; /* of the test that runs */

void
hed_remote_stream_drop(void *m, struct hed_stream *s)
{
    peer->stream_gone(m, s);
}

CUresult
hed_remote_await_context(void *m, struct hed_context *c)
{
    return peer->context_wait(m, c);
}

CUresult
hed_remote_await_stream(void *m, struct hed_stream *s)
{
    return peer->stream_wait(m, s);
}

CUresult
hed_remote_await_event(void *m, struct hed_event *e)
{
    return peer->event_wait(m, e);
}

CUresult
hed_remote_ask_stream(void *m, struct hed_stream *s)
{
    return peer->stream_query(m, s);
}

CUresult
hed_remote_ask_event(void *m, struct hed_event *e)
{
    return peer->event_query(m, e);
}

void
hed_remote_look_at_stream(void *m, struct hed_stream *s)
{
    peer->stream_look(m, s);
}

CUresult
hed_remote_put(void *m, struct hed_stream *s, struct hed_work *w)
{
    return peer->put(m, s, w);
}

/* As if it were work. */
CUresult
hed_remote_put_launch(void *m, struct hed_stream *s, struct hed_function *f,
                      const struct hed_launch *l, const CUlaunchAttribute *attributes,
                      unsigned count)
{
    struct hed_work w = {.kind = HED_WORK_KERNEL,
                         .number = s->submitted,
                         .ctx = s->ctx,
                         .kernel = {.launch = *l, .function = f}};

    (void)attributes;
    (void)count;
    return peer->put(m, s, &w);
}

CUresult
hed_remote_copy_host(void *m, struct hed_stream *s, const struct hed_copy *c, bool to_host,
                     bool wait)
{
    return peer->copy_host(m, s, c, to_host, wait);
}

bool
hed_remote_shares(void *m, uint64_t at, uint64_t size)
{
    return peer->shares(m, at, size);
}

bool
hed_remote_functions_wait(void *m)
{
    return peer->functions_wait(m);
}

CUresult
hed_remote_mirror_exec(void *m, struct hed_context *c, struct hed_exec *e,
                       struct hed_graph_exec *body, bool first)
{
    return peer->exec_made(m, c, e, body, first);
}

void
hed_remote_drop_exec(void *m, uint64_t handle)
{
    peer->exec_gone(m, handle);
}

static void
stream_init(void *m, struct hed_stream *s)
{
    (void)m;
    (void)s;
}

struct fake *
peer_create(int devices, const struct peer *p, void *data)
{
    static struct hed_machine machine;

    peer = p;
    machine = (struct hed_machine){
        .memory = fake_executor.memory,
        .clusters = true,
        .far = &p->far,
        .context_bytes = sizeof(struct hed_remote_context),
        .stream_bytes = sizeof(struct hed_remote_stream),
        .exec_bytes = sizeof(struct hed_remote_exec),
        .context_made = p->context_made,
        .context_gone = p->context_gone,
        .context_limit = p->context_limit,
        .context_wait = hed_remote_context_wait,
        .stream_init = stream_init,
        .stream_made = p->stream_made,
        .stream_gone = hed_remote_stream_gone,
        .stream_set = p->stream_set,
        .stream_query = hed_remote_stream_query,
        .stream_wait = hed_remote_stream_wait,
        .point_reached = hed_remote_point_reached,
        .point_wait = hed_remote_point_wait,
        .event_made = p->event_made,
        .event_gone = p->event_gone,
        .event_query = hed_remote_event_query,
        .event_wait = hed_remote_event_wait,
        .event_time = p->event_time,
        .submit = hed_remote_submit,
        .launch = hed_remote_launch,
        .copy = hed_remote_copy,
        .graph_launch = hed_remote_graph_launch,
        .graph_upload = hed_remote_graph_upload,
        .graph_gone = hed_remote_graph_gone,
    };
    return fake_create_on(devices, &machine, data);
}
