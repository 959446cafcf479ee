/* Stands in for what lets programs share a GPU, in a build without it (HEDDLE_SHARE=OFF). */
#include "base/err.h"
#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "share/share.h"

int
hed_cli_sched(int argc, char **argv)
{
    return hed_cli_lacks("sched", "SHARE");
}

int
hed_sched_parse(const char *text, struct hed_sched_settings *out, struct hed_why *why)
{
    hed_why_set(why, "this heddle was built without it (HEDDLE_SHARE=OFF)");
    return HED_ENOTSUP;
}

void
hed_doctor_share(struct hed_doctor *d)
{
    hed_doctor_say(d, HED_FINDING_OK, "sharing", "this heddle was built without it");
}
