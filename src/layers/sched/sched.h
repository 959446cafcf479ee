/* The sched layer's files: sched.c is the layer, calls.c what it does about calls, swap.c what it
 * does if there is no device memory, driver.c the functions that it lends to the engine
 * (share/sched/gate.h). */
#pragma once

#include "core/layer.h"
#include "share/share.h"

/* calls.c */
extern const struct hed_cuda_ops hed_sched_cuda;
bool hed_sched_sees(enum hed_cuda_call id);
void hed_sched_before(struct hed_layer *self, enum hed_cuda_call id, const void *args, void *memo);
void hed_sched_after(struct hed_layer *self, enum hed_cuda_call id, const void *args, void *memo,
                     CUresult result);

/* swap.c: a call that takes device memory has found none. */
struct hed_sched_need {
    enum hed_cuda_call id;
    void *args;
    uint64_t bytes; /* that it takes at least; 0: not known */
    int device;     /* -1: that of the current context */
};

/* Makes the call again after programs of lower priority have left device memory, one by one, until
 * it succeeds or nobody is left. With swap=off, and if there is no one to send out, only says that
 * there is no memory. */
CUresult hed_sched_make_room(struct hed_layer *self, const struct hed_sched_need *need);

/* driver.c: functions of the layer below. */
extern const struct hed_sched_driver hed_sched_driver;
