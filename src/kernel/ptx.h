/* What other storeys see of kernel/ptx: PTX as a model, and what runs it. */
#pragma once

#include "kernel/ptx/interp/interp.h"
#include "kernel/ptx/lower/compile.h"
#include "kernel/ptx/pass/explain.h"
#include "kernel/ptx/pass/rows.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/abi.h"
#include "kernel/ptx/run/board.h"
#include "kernel/ptx/run/features.h"
#include "kernel/ptx/run/layout.h"
#include "kernel/ptx/run/load.h"
#include "kernel/ptx/text/parse.h"
#include "kernel/ptx/text/print.h"
