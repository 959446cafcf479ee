/* The client of a server, for those who complete it: backends/remote makes a plug-in of it, and the
 * mover (move/session) takes it from one worker to another.
 */
#pragma once

#include "remote/client/code.h"
#include "remote/client/memory.h"
#include "remote/client/mover.h"
#include "remote/client/queue.h"
#include "remote/client/remote.h"
