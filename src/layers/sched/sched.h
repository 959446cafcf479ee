/* The sched layer's files: sched.c is the layer, calls.c what it does about calls, driver.c the
 * functions that it lends to the engine (sched/gate.h). */
#pragma once

#include "core/layer.h"
#include "sched/gate.h"

/* calls.c */
extern const struct hed_cuda_ops hed_sched_cuda;
bool hed_sched_sees(enum hed_cuda_call id);
void hed_sched_before(struct hed_layer *self, enum hed_cuda_call id, const void *args, void *memo);
void hed_sched_after(struct hed_layer *self, enum hed_cuda_call id, const void *args, void *memo,
                     CUresult result);

/* driver.c: functions of the layer below. */
extern const struct hed_sched_driver hed_sched_driver;
