/* The layers, for the registry. A layer does not include this: it knows no sibling. */
#pragma once

#include "layers/plugin/plugin.h"

struct hed_layer_type;

extern const struct hed_layer_type hed_trace_layer;  /* every call becomes a record in a file */
extern const struct hed_layer_type hed_fault_layer;  /* fails chosen calls, for tests */
extern const struct hed_layer_type hed_watch_layer;  /* sees what the program would miss */
extern const struct hed_layer_type hed_quota_layer;  /* limits what there is of memory */
extern const struct hed_layer_type hed_record_layer; /* calls wait in queues, not in threads */
extern const struct hed_layer_type hed_sched_layer;  /* programs share a GPU by turns */
