/* The backends that are built in, for the registry. The others are plug-ins. */
#pragma once

#include "backends/gpu/gpu.h"
#include "backends/null/null.h"
