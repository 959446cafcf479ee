/* The contexts that the layer watch has seen: which there are, and which of them are broken.
 *
 * Invariants:
 * 1. A context is taken out before the call that ends it, because another thread may be given the
 *    same handle right after, and put back if it did not end.
 * 2. `unclear` is set while a problem was told of a context that is not known. The next context
 *    that turns out to be broken is that one, as far as anybody can tell.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "core/layer.h"

#define WATCH_CONTEXTS 64 /* problems of more are told each time, and those are not waited for */

struct watch_context {
    CUcontext context; /* NULL: free */
    CUdevice device;   /* of a primary context */
    uint32_t refs;     /* of a primary context: how often the program has retained it */
    bool primary;
    bool made; /* by the program */
    bool broken;
};

struct watch_contexts {
    struct hed_lock lock; /* guards the rest */
    struct watch_context at[WATCH_CONTEXTS];
    bool unclear;
};

void watch_contexts_init(struct watch_contexts *c);

/* The program has made a context, or retained a device's primary one. */
void watch_context_made(struct watch_contexts *c, CUcontext context);
void watch_primary_retained(struct watch_contexts *c, CUdevice device, CUcontext context);

/* A device's primary context and its references. False: none is known. */
bool watch_primary_find(struct watch_contexts *c, CUdevice device, struct watch_context *out);

/* A primary context was released, and has not ended. */
void watch_primary_released(struct watch_contexts *c, CUcontext context);

/* A call was answered with an error that breaks a context; NULL: which one is not known. True if
 * that is news. */
bool watch_context_broke(struct watch_contexts *c, CUcontext context);

/* Takes a context out. False: it is not known, and *out has only the handle. */
bool watch_context_take(struct watch_contexts *c, CUcontext context, struct watch_context *out);
void watch_context_put_back(struct watch_contexts *c, const struct watch_context *context);

/* Writes the contexts that the program has made itself, and returns how many they are. */
size_t watch_contexts_made(struct watch_contexts *c, CUcontext out[WATCH_CONTEXTS]);
