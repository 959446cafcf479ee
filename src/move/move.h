/* What other storeys see of pausing, saving, restoring and moving programs: what the command does
 * (command/), snapshots on disk (file/), what programs are told (talk/), and the mover of a client.
 */
#pragma once

#include "move/command/command.h"
#include "move/command/criu.h"
#include "move/command/private.h"
#include "move/command/recover.h"
#include "move/command/saved.h"
#include "move/file/files.h"
#include "move/file/store.h"
#include "move/file/writer.h"
#include "move/talk/talk.h"

struct hed_remote_mover;

/* What a client needs to be moved (remote/client/mover.h). */
extern const struct hed_remote_mover hed_remote_session_mover;
