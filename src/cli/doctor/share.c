/* The doctor checks sharing: can programs meet (--sched), and can the driver load heddle
 * (--inject)?
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/meeting.h"
#include "cli/doctor/doctor.h"
#include "cli/probe.h"
#include "core/cupti_files.h"
#include "locate/driver.h"
#include "locate/install.h"
#include "share/share.h"

#define REPORTED_MAX 32 /* files in the way that are reported one by one */

/* Is this a file that keeps programs from sharing a GPU? *why says what is wrong with it. */
static bool
is_in_the_way(const char *name, struct hed_why *why)
{
    struct hed_meet *m = NULL;
    const int err = hed_meet_look(name, &hed_sched_shape, &m, why);

    hed_meet_leave(m);
    return err != 0 && err != HED_ENOTFOUND;
}

struct report {
    struct hed_doctor *doctor;
    unsigned bad;
};

static bool
report_meeting(void *arg, const char *name)
{
    struct report *r = arg;
    struct hed_why why = {""};

    if (strncmp(name, HED_SCHED_BEGIN, strlen(HED_SCHED_BEGIN)) == 0 && is_in_the_way(name, &why) &&
        ++r->bad <= REPORTED_MAX)
        hed_doctor_say(r->doctor, HED_FINDING_WARN, "sharing", "%s", why.text);
    return true;
}

/* Reports every such file, and for the first ones what is wrong with each. False if there is
 * none. */
static bool
report_meetings(struct hed_doctor *d, const struct hed_meeting_folders *folders)
{
    struct report r = {.doctor = d};

    hed_meeting_each(folders, report_meeting, &r);
    if (r.bad > REPORTED_MAX)
        hed_doctor_say(d, HED_FINDING_WARN, "sharing", "%u more such files in %s",
                       r.bad - REPORTED_MAX, folders->at[0].path);
    if (r.bad)
        hed_doctor_hint(d,
                        "Programs that find %s run without being scheduled. Remove %s if no "
                        "program uses %s, or use one version of heddle.",
                        r.bad == 1 ? "this file" : "such a file", r.bad == 1 ? "it" : "the files",
                        r.bad == 1 ? "it" : "them");
    return r.bad > 0;
}

/* Reports what keeps programs from meeting where they should. False if there is nothing. */
static bool
report_folder(struct hed_doctor *d)
{
    struct hed_meeting_folders folders;
    bool is = false;

    if (hed_meeting_open(false, &folders, NULL) != 0)
        return false;
    if (folders.warning.text[0]) {
        hed_doctor_say(d, HED_FINDING_WARN, "sharing", "%s", folders.warning.text);
        hed_doctor_hint(d, "Until then programs meet in %s.", folders.at[0].path);
        is = true;
    }
    is = report_meetings(d, &folders) || is;
    hed_meeting_close(&folders);
    return is;
}

/* Tries it: sharing needs memory, locks of the kernel, and a folder that can be written. */
static void
check_sharing(struct hed_doctor *d)
{
    char name[64];
    struct hed_meet *m = NULL;
    struct hed_why why = {""};

    snprintf(name, sizeof name, "doctor-%ld", (long)getpid());

    const int err = hed_sched_join(name, &(struct hed_sched_settings){0}, &m, &why);

    hed_meet_leave(m);
    if (err) {
        hed_doctor_say(d, HED_FINDING_WARN, "sharing", "programs cannot share a GPU (--sched): %s",
                       why.text);
        hed_doctor_hint(d, "They need /dev/shm. For a container: docker run --ipc=host, or "
                           "--shm-size=1g");
    } else if (!report_folder(d)) {
        hed_doctor_say(d, HED_FINDING_OK, "sharing", "programs can share a GPU (--sched)");
    }
}

/* ---- --inject -------------------------------------------------------------------------------- */

/* Can the library be loaded? `out` becomes its full path, or the reason why not. */
static bool
try_library(const char *name, char *out, size_t size)
{
    struct hed_probe *p = hed_probe_create(name, NULL);
    const char *hint;

    if (!p)
        return false;
    hed_probe_load(p);

    const bool good = hed_probe_ok(p);

    if (good)
        snprintf(out, size, "%s", p->found);
    else
        hed_probe_explain(p, out, size, &hint);
    hed_probe_free(p);
    return good;
}

/* Looks for CUPTI where the injected library does. */
static bool
find_cupti(char *out, size_t size)
{
    static const char *const sonames[] = {HED_CUPTI_SONAMES};
    static const char *const folders[] = {HED_CUPTI_FOLDERS};
    const size_t count = sizeof sonames / sizeof *sonames;
    char path[PATH_MAX];

    for (size_t i = 0; i < count; i++)
        if (try_library(sonames[i], out, size))
            return true;
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        for (size_t i = 0; i < count; i++) {
            snprintf(path, sizeof path, "%s/%s", folders[f], sonames[i]);
            if (access(path, F_OK) == 0 && try_library(path, out, size))
                return true;
        }
    }
    return false;
}

static void
check_inject(struct hed_doctor *d)
{
    const char *given = d->config.cupti;
    const bool gpu = hed_locate_gpu(d->config.driver);
    struct hed_install install;
    char path[PATH_MAX];
    char found[PATH_MAX] = "";

    if (hed_install_find(&install, NULL) != 0) /* reported already */
        return;
    if (!hed_install_plugin(&install, "libheddle-inject", path, sizeof path)) {
        hed_doctor_say(d, HED_FINDING_FAIL, "--inject", "there is no %s", path);
        hed_doctor_hint(d, "Install heddle again.");
    } else if (*given && !try_library(given, found, sizeof found)) {
        hed_doctor_say(d, HED_FINDING_FAIL, "--inject", "the setting `cupti` is %s: %s", given,
                       found);
        hed_doctor_hint(d, "Set it to a libcupti.so.13 or .12, or remove it.");
    } else if (!*given && !find_cupti(found, sizeof found)) {
        /* Without a GPU, CUPTI is not missed. */
        hed_doctor_say(d, gpu ? HED_FINDING_WARN : HED_FINDING_OK, "--inject",
                       "does not work here: no libcupti.so.13 or .12 was found");
        hed_doctor_hint(d,
                        "CUPTI comes with the CUDA toolkit (NVIDIA's package cuda-cupti). If it is "
                        "in an unusual folder, set `cupti` to its path.");
    } else {
        hed_doctor_say(d, HED_FINDING_OK, "--inject", "%s; CUPTI is %s",
                       gpu ? "works" : "works on machines with a GPU", found);
    }
}

void
hed_doctor_share(struct hed_doctor *d)
{
    check_sharing(d);
    check_inject(d);
}
