/* The stand-in of peer.h. */
#include "unit/remote/peer.h"

#include "driver/memory/array.h"
#include "remote/client/remote.h"

static const struct peer *peer; /* of the running test */

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

/* No test here shares anything with other programs: tests/e2e does. */
CUresult
hed_remote_await_shared(void *m, struct hed_event *e)
{
    (void)m, (void)e;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
hed_remote_ask_shared(void *m, struct hed_event *e)
{
    (void)m, (void)e;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
hed_remote_put_shared(void *m, struct hed_stream *s, struct hed_event *e, bool record)
{
    (void)m, (void)s, (void)e, (void)record;
    return CUDA_ERROR_NOT_SUPPORTED;
}

bool
hed_remote_has_shared(void *m)
{
    (void)m;
    return false;
}

static bool
is_never_possible(void *m)
{
    (void)m;
    return false;
}

const struct hed_machine_keys hed_remote_keys = {.possible = is_never_possible};

int
hed_remote_physical_export(void *m, struct hed_physical_memory *p, const uint8_t *owner, int *fd)
{
    (void)m, (void)p, (void)owner, (void)fd;
    return HED_ENOTSUP;
}

int
hed_remote_physical_import(void *m, int fd, uint8_t *owner, struct hed_physical_memory **out)
{
    (void)m, (void)fd, (void)owner, (void)out;
    return HED_ENOTSUP;
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

/* Reported to the test as work. */
CUresult
hed_remote_put_launch(void *m, struct hed_stream *s, const struct hed_launch *l, uint64_t number)
{
    struct hed_work w = {.kind = HED_WORK_KERNEL, .number = number, .ctx = s->ctx, .kernel = *l};

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

CUresult
hed_remote_graph_condition(void *m, struct hed_context *c, uint64_t graph, unsigned value,
                           unsigned flags, uint64_t *out)
{
    return peer->condition_made(m, c, graph, value, flags, out);
}

void
hed_remote_graph_conditions_gone(void *m, uint64_t graph)
{
    peer->conditions_gone(m, graph);
}

bool
hed_remote_must_run_alone(void *m, const struct hed_stream *s, const struct hed_launch *l)
{
    return false;
}

uint64_t
hed_remote_patience_alone(const struct hed_launch *l)
{
    (void)l;
    return 0;
}

void
hed_remote_not_alone(const struct hed_launch *l)
{
}

/* ---- entries of the table that are messages themselves --------------------------------------- */

CUresult
hed_remote_context_made(void *m, struct hed_context *c)
{
    return peer->context_made(m, c);
}

void
hed_remote_context_gone(void *m, struct hed_context *c)
{
    peer->context_gone(m, c);
}

CUresult
hed_remote_context_limit(void *m, struct hed_context *c, CUlimit limit, size_t value)
{
    return peer->context_limit(m, c, limit, value);
}

void
hed_remote_stream_init(void *m, struct hed_stream *s)
{
    (void)m;
    (void)s;
}

void
hed_remote_stream_made(void *m, struct hed_stream *s)
{
    peer->stream_made(m, s);
}

void
hed_remote_stream_set(void *m, struct hed_stream *s, CUlaunchAttributeID id,
                      const CUlaunchAttributeValue *value)
{
    peer->stream_set(m, s, id, value);
}

void
hed_remote_event_made(void *m, struct hed_event *e)
{
    peer->event_made(m, e);
}

void
hed_remote_event_gone(void *m, struct hed_event *e)
{
    peer->event_gone(m, e);
}

CUresult
hed_remote_event_time(void *m, struct hed_event *begin, struct hed_event *end, float *ms)
{
    return peer->event_time(m, begin, end, ms);
}

CUresult
hed_remote_make_array(void *m, struct hed_context *c, struct hed_array *a)
{
    return peer->array_made(m, c, a);
}

CUresult
hed_remote_make_mipmap(void *m, struct hed_context *c, struct hed_mipmap *mm)
{
    return peer->mipmap_made(m, c, mm);
}

void
hed_remote_drop_array(void *m, uint64_t context, uint64_t handle)
{
    peer->array_gone(m, context, handle);
}

CUresult
hed_remote_make_texture(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                        const CUDA_TEXTURE_DESC_v1 *tex, const CUDA_RESOURCE_VIEW_DESC_v1 *view,
                        uint64_t *value)
{
    return peer->texture_made(m, c, res, tex, view, value);
}

CUresult
hed_remote_make_surface(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                        uint64_t *value)
{
    return peer->surface_made(m, c, res, value);
}

void
hed_remote_drop_object(void *m, struct hed_context *c, bool surface, uint64_t value)
{
    peer->object_gone(m, c, surface, value);
}

size_t
hed_remote_memory_left(void *m, struct hed_context *c)
{
    return peer->memory_left(m, c);
}

/* ---- entries that no test uses --------------------------------------------------------------- */

int
hed_remote_reserve(void *m, uint64_t want, uint64_t size, uint64_t *base)
{
    return fake_executor.memory.reserve(m, want, size, base);
}

uint64_t
hed_remote_usable(void *m)
{
    (void)m;
    return 0;
}

int
hed_remote_map(void *m, uint64_t at, uint64_t size)
{
    return fake_executor.memory.map(m, at, size);
}

void
hed_remote_unmap(void *m, uint64_t at, uint64_t size)
{
    fake_executor.memory.unmap(m, at, size);
}

int
hed_remote_physical_create(void *m, int device, uint64_t size, struct hed_physical_memory **out)
{
    return fake_executor.memory.physical_create(m, device, size, out);
}

void
hed_remote_physical_free(void *m, struct hed_physical_memory *p)
{
    fake_executor.memory.physical_free(m, p);
}

int
hed_remote_physical_map(void *m, struct hed_physical_memory *p, uint64_t offset, uint64_t at,
                        uint64_t size)
{
    return fake_executor.memory.physical_map(m, p, offset, at, size);
}

int
hed_remote_protect(void *m, uint64_t at, uint64_t size, bool readable, bool writable)
{
    return fake_executor.memory.protect(m, at, size, readable, writable);
}

void
hed_remote_memory_copy(void *m, uint64_t to, uint64_t from, size_t size)
{
    fake_executor.memory.copy(m, to, from, size);
}

void
hed_remote_memory_fill(void *m, uint64_t to, uint32_t value, unsigned width, size_t count)
{
    fake_executor.memory.fill(m, to, value, width, count);
}

CUresult
hed_remote_open(void *m, struct hed_device *dev, const struct hed_image *image,
                struct hed_code **out, const struct hed_jit_how *how, struct hed_why *why)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

void
hed_remote_close(void *m, struct hed_code *code)
{
}

CUresult
hed_remote_describe(void *m, struct hed_device *dev, struct hed_code *code, uint32_t kernel)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
hed_remote_variable(void *m, struct hed_context *c, struct hed_code *code, bool managed,
                    const char *name, uint64_t *at, uint64_t *size)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

void
hed_remote_function_made(void *m, struct hed_function *f)
{
}

void
hed_remote_function_gone(void *m, struct hed_function *f)
{
}

CUresult
hed_remote_function_set(void *m, struct hed_function *f, CUfunction_attribute a, int value)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
hed_remote_function_load(void *m, struct hed_function *f, const uint32_t *block,
                         struct hed_why *why)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
hed_remote_link_made(void *m, struct hed_device *dev, const struct hed_jit_how *how,
                     struct hed_linker **out)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
hed_remote_link_add(void *m, struct hed_linker *l, const struct hed_linker_input *input,
                    struct hed_buf *log)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
hed_remote_link_end(void *m, struct hed_linker *l, struct hed_buf *out, struct hed_buf *log)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

void
hed_remote_link_gone(void *m, struct hed_linker *l)
{
}

CUresult
hed_remote_call(void *m, struct hed_context *c, enum hed_cuda_call id, void *args)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
hed_remote_unknown(void *m, struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

void
hed_remote_forked(void *m)
{
}

void
hed_remote_fini(void *m)
{
}

/* ---- a driver -------------------------------------------------------------------------------- */

struct fake *
peer_create(int devices, const struct peer *p, void *data)
{
    static struct hed_machine machine;

    peer = p;
    machine = hed_remote_machine;
    machine.memory = fake_executor.memory; /* without large units and blocks that stay mapped */
    return fake_create_on(devices, &machine, data);
}
