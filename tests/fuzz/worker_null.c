/* The null backend for worker_play.h: objects of every kind exist, and all addresses. */
#include "worker_play.h"

#include "backends/null/null.h"
#include "base/err.h"

void
play_backend_start(struct hed_worker_channel *ch)
{
    struct hed_worker *w = ch->worker;
    struct hed_why why = {""};

    w->no_memory = true;
    w->backend = HED_BACKEND_NULL;
    must(hed_layer_create(&hed_null_backend, NULL, NULL, &w->top, &why) == 0);
    hed_arena_init_sizes(w);
    must(hed_worker_memory_init(w, &why) == 0 && hed_worker_code_init(w, &why) == 0 &&
         hed_worker_host_init(w, &why) == 0);
}

void
play_backend_names(struct hed_worker *w)
{
    for (unsigned kind = 1; kind <= PLAY_KINDS; kind++) {
        (void)hed_name_unbind(w->names, play_name(kind), NULL);
        must(hed_name_bind(w->names, play_name(kind), HED_NULL_OBJECT + kind) == 0);
    }
}

bool
play_backend_takes(const struct hed_msg *m)
{
    (void)m;
    return true;
}
