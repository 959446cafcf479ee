/* A stand-in for the worker and for the files of remote/client that send messages.
 *
 * The tests' machine is the remote one; machine.c, queue.c, progress.c, route.c, private.c, exec.c
 * and object.c are the real files. A test gets what those would have sent through the functions of
 * its struct peer, and answers as it likes. Entries that a test does not expect to be called are
 * NULL.
 */
#pragma once

#include "remote/client/queue.h"
#include "unit/driver/fake.h"

struct peer {
    CUresult (*context_made)(void *m, struct hed_context *c);
    void (*context_gone)(void *m, struct hed_context *c);
    CUresult (*context_limit)(void *m, struct hed_context *c, CUlimit limit, size_t value);
    CUresult (*context_wait)(void *m, struct hed_context *c);
    void (*stream_made)(void *m, struct hed_stream *s);
    void (*stream_gone)(void *m, struct hed_stream *s);
    CUresult (*stream_wait)(void *m, struct hed_stream *s);
    CUresult (*stream_query)(void *m, struct hed_stream *s);
    void (*stream_look)(void *m, struct hed_stream *s);
    void (*stream_set)(void *m, struct hed_stream *s, CUlaunchAttributeID id,
                       const CUlaunchAttributeValue *value);
    void (*event_made)(void *m, struct hed_event *e);
    void (*event_gone)(void *m, struct hed_event *e);
    CUresult (*event_wait)(void *m, struct hed_event *e);
    CUresult (*event_query)(void *m, struct hed_event *e);
    CUresult (*event_time)(void *m, struct hed_event *begin, struct hed_event *end, float *ms);
    CUresult (*put)(void *m, struct hed_stream *s, struct hed_work *w);
    CUresult (*copy_host)(void *m, struct hed_stream *s, const struct hed_copy *c, bool to_host,
                          bool wait);
    bool (*shares)(void *m, uint64_t at, uint64_t size);
    bool (*functions_wait)(void *m);
    CUresult (*exec_made)(void *m, struct hed_context *c, struct hed_exec *e,
                          struct hed_graph_exec *body, bool first);
    void (*exec_gone)(void *m, uint64_t handle);
    CUresult (*condition_made)(void *m, struct hed_context *c, uint64_t graph, unsigned value,
                               unsigned flags, uint64_t *out);
    void (*conditions_gone)(void *m, uint64_t graph);
    CUresult (*array_made)(void *m, struct hed_context *c, struct hed_array *a);
    CUresult (*mipmap_made)(void *m, struct hed_context *c, struct hed_mipmap *mm);
    void (*array_gone)(void *m, uint64_t context, uint64_t handle);
    CUresult (*texture_made)(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                             const CUDA_TEXTURE_DESC_v1 *tex,
                             const CUDA_RESOURCE_VIEW_DESC_v1 *view, uint64_t *value);
    CUresult (*surface_made)(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                             uint64_t *value);
    void (*object_gone)(void *m, struct hed_context *c, bool surface, uint64_t value);
    size_t (*memory_left)(void *m, struct hed_context *c);
};

/* A driver on the remote machine with this peer. The peer's functions get the struct fake, whose
 * `data` is for them. One at a time. */
struct fake *peer_create(int devices, const struct peer *p, void *data);
