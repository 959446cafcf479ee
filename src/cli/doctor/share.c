/* The doctor checks sharing: can programs meet (--sched), and can the driver load heddle
 * (--inject)?
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "cli/install.h"
#include "cli/probe.h"
#include "core/cupti_files.h"
#include "locate/driver.h"
#include "sched/share.h"

#define SHM "/dev/shm/"
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

/* Reports every such file, and for the first ones what is wrong with each. False if there is
 * none. */
static bool
report_meetings(struct hed_doctor *d)
{
    char begin[64];
    DIR *dir = opendir(SHM);
    const struct dirent *e;
    struct hed_why why = {""};
    unsigned bad = 0;

    const size_t user = (size_t)snprintf(begin, sizeof begin, "heddle-%u-", (unsigned)geteuid());

    snprintf(begin + user, sizeof begin - user, HED_SCHED_BEGIN);
    while (dir && (e = readdir(dir)) != NULL)
        if (strncmp(e->d_name, begin, strlen(begin)) == 0 &&
            is_in_the_way(e->d_name + user, &why) && ++bad <= REPORTED_MAX)
            hed_doctor_say(d, HED_FINDING_WARN, "sharing", "%s", why.text);
    if (dir)
        closedir(dir);
    if (bad > REPORTED_MAX)
        hed_doctor_say(d, HED_FINDING_WARN, "sharing", "%u more such files in %s",
                       bad - REPORTED_MAX, SHM);
    if (bad)
        hed_doctor_hint(d,
                        "Programs that find %s run without being scheduled. Remove %s if no "
                        "program uses %s, or use one version of heddle.",
                        bad == 1 ? "this file" : "such a file", bad == 1 ? "it" : "the files",
                        bad == 1 ? "it" : "them");
    return bad > 0;
}

/* Tries it: sharing needs memory, locks of the kernel, and a folder that can be written. */
static void
check_sharing(struct hed_doctor *d)
{
    char name[64];
    char path[128];
    struct hed_meet *m = NULL;
    struct hed_why why = {""};

    snprintf(name, sizeof name, "doctor-%ld", (long)getpid());
    snprintf(path, sizeof path, SHM "heddle-%u-%s", (unsigned)geteuid(), name);

    const int err = hed_sched_join(name, &(struct hed_sched_settings){0}, &m, &why);

    hed_meet_leave(m);
    (void)unlink(path);
    if (err) {
        hed_doctor_say(d, HED_FINDING_WARN, "sharing", "programs cannot share a GPU (--sched): %s",
                       why.text);
        hed_doctor_hint(d, "They need /dev/shm. For a container: docker run --ipc=host, or "
                           "--shm-size=1g");
    } else if (!report_meetings(d)) {
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
