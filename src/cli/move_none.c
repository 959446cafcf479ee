/* Stands in for what saves, restores and moves programs, in a build without it (HEDDLE_MOVE=OFF).
 */
#include "base/err.h"
#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "cli/drain.h"
#include "cli/snap/ckpt.h"
#include "cli/snap/snap.h"
#include "move/move.h"

int
hed_cli_snap(int argc, char **argv)
{
    return hed_cli_lacks("snap", "MOVE");
}

int
hed_cli_migrate(int argc, char **argv)
{
    return hed_cli_lacks("migrate", "MOVE");
}

int
hed_cli_drain(const char *listen, const char *to)
{
    return hed_cli_lacks("serve: --drain", "MOVE");
}

int
hed_ckpt_parse(const char *text, struct hed_ckpt *out, struct hed_why *why)
{
    hed_why_set(why, "this heddle was built without it (HEDDLE_MOVE=OFF)");
    return HED_ENOTSUP;
}

/* Only for --resume: --ckpt has been refused. */
int
hed_ckpt_run(const struct hed_ckpt_how *how)
{
    return hed_cli_lacks("run: --resume", "MOVE");
}

/* No program can have been saved by this heddle; another one that did says so itself. */
bool
hed_saved_hear(pid_t pid, char *file, size_t size)
{
    return false;
}

void
hed_doctor_criu(struct hed_doctor *d)
{
    hed_doctor_say(d, HED_FINDING_OK, "snapshots", "this heddle was built without them");
}
