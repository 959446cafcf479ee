/* What other storeys see of kernel/forkserver: the processes that compile. */
#pragma once

#include "kernel/forkserver/forkserver.h"
#include "kernel/forkserver/message.h"
