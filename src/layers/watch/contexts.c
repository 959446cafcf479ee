/* The contexts of layers/watch/contexts.h. */
#include "layers/watch/contexts.h"

#include <string.h>

void
watch_contexts_init(struct watch_contexts *c)
{
    memset(c, 0, sizeof *c);
    hed_lock_init(&c->lock, HED_RANK_WATCHED);
}

/* The entry of a context, or a free one. NULL: there is none left. */
static struct watch_context *
find_context_locked(struct watch_contexts *c, CUcontext context)
{
    struct watch_context *spare = NULL;

    for (size_t i = 0; i < WATCH_CONTEXTS; i++) {
        if (c->at[i].context == context)
            return &c->at[i];
        if (!c->at[i].context && !spare)
            spare = &c->at[i];
    }
    return spare;
}

/* The entry of a context, which is made if need be. NULL: there is no room. */
static struct watch_context *
learn_context_locked(struct watch_contexts *c, CUcontext context)
{
    struct watch_context *x = context ? find_context_locked(c, context) : NULL;

    if (x && !x->context)
        *x = (struct watch_context){.context = context};
    return x;
}

void
watch_context_made(struct watch_contexts *c, CUcontext context)
{
    hed_lock(&c->lock);

    struct watch_context *x = learn_context_locked(c, context);

    if (x)
        x->made = true;
    hed_unlock(&c->lock);
}

void
watch_primary_retained(struct watch_contexts *c, CUdevice device, CUcontext context)
{
    hed_lock(&c->lock);

    struct watch_context *x = learn_context_locked(c, context);

    for (size_t i = 0; i < WATCH_CONTEXTS; i++) /* an earlier one has ended unseen */
        if (&c->at[i] != x && c->at[i].primary && c->at[i].device == device)
            c->at[i] = (struct watch_context){.context = NULL};
    if (x) {
        x->primary = true;
        x->device = device;
        x->refs++;
    }
    hed_unlock(&c->lock);
}

bool
watch_primary_find(struct watch_contexts *c, CUdevice device, struct watch_context *out)
{
    bool found = false;

    hed_lock(&c->lock);
    for (size_t i = 0; !found && i < WATCH_CONTEXTS; i++) {
        found = c->at[i].context && c->at[i].primary && c->at[i].device == device;
        if (found)
            *out = c->at[i];
    }
    hed_unlock(&c->lock);
    return found;
}

void
watch_primary_released(struct watch_contexts *c, CUcontext context)
{
    hed_lock(&c->lock);

    struct watch_context *x = context ? find_context_locked(c, context) : NULL;

    if (x && x->refs)
        x->refs--;
    hed_unlock(&c->lock);
}

bool
watch_context_broke(struct watch_contexts *c, CUcontext context)
{
    bool news = true;

    hed_lock(&c->lock);
    if (context) {
        struct watch_context *x = learn_context_locked(c, context);

        news = !c->unclear && !(x && x->broken);
        if (x && !x->broken) {
            x->broken = true;
            c->unclear = false;
        }
    } else {
        news = !c->unclear;
        for (size_t i = 0; i < WATCH_CONTEXTS; i++)
            news = news && !c->at[i].broken;
        c->unclear = c->unclear || news;
    }
    hed_unlock(&c->lock);
    return news;
}

bool
watch_context_take(struct watch_contexts *c, CUcontext context, struct watch_context *out)
{
    bool known;

    *out = (struct watch_context){.context = context};
    hed_lock(&c->lock);

    struct watch_context *x = context ? find_context_locked(c, context) : NULL;

    known = x && x->context;
    if (known) {
        *out = *x;
        x->context = NULL;
        x->broken = false;
        c->unclear = false;
    }
    hed_unlock(&c->lock);
    return known;
}

void
watch_context_put_back(struct watch_contexts *c, const struct watch_context *context)
{
    hed_lock(&c->lock);

    struct watch_context *x = learn_context_locked(c, context->context);

    if (x)
        *x = *context;
    hed_unlock(&c->lock);
}

size_t
watch_contexts_made(struct watch_contexts *c, CUcontext out[WATCH_CONTEXTS])
{
    size_t n = 0;

    hed_lock(&c->lock);
    for (size_t i = 0; i < WATCH_CONTEXTS; i++)
        if (c->at[i].context && c->at[i].made)
            out[n++] = c->at[i].context;
    hed_unlock(&c->lock);
    return n;
}
