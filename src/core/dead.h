/* The backend of a session that could not be built: every call answers one error. */
#pragma once

#include "core/layer.h"

/* A static instance that answers with these; valid for ever. Only one is needed in a process. */
struct hed_layer *hed_dead_layer(CUresult cuda, nvmlReturn_t nvml);
