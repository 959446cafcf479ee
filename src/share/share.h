/* What other storeys see of sharing a GPU: the engines that the layers and the injected library
 * drive, and what the command shows of them.
 */
#pragma once

#include "share/quota/quota.h"
#include "share/record/record.h"
#include "share/sched/gate.h"
#include "share/sched/look.h"
#include "share/sched/share.h"
#include "share/sched/swap.h"
