/* What other storeys see of kernel/engine, which runs the blocks of grids on this machine's cores.
 */
#pragma once

#include "kernel/engine/engine.h"
#include "kernel/engine/heap.h"
#include "kernel/engine/numbers.h"
#include "kernel/engine/rt.h"
#include "kernel/engine/sandbox.h"
#include "kernel/engine/texels.h"
#include "kernel/engine/watch.h"
