/* What other storeys see of traces: writing one, and reading it. */
#pragma once

#include "see/trace/activity.h"
#include "see/trace/call.h"
#include "see/trace/format.h"
#include "see/trace/print.h"
#include "see/trace/read.h"
#include "see/trace/repeat.h"
#include "see/trace/schema.h"
#include "see/trace/write.h"
