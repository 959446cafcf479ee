/* What other storeys see of kernel/cache: compiled kernels on disk. */
#pragma once

#include "kernel/cache/archive.h"
#include "kernel/cache/cache.h"
