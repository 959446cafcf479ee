/* The doctor on sharing: can programs meet, and can the driver load heddle (--inject)? */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "cli/place.h"
#include "cli/probe.h"
#include "core/cupti_places.h"
#include "locate/driver.h"
#include "sched/share.h"

#define SHM "/dev/shm/"

/* Whoever finds such a file cannot take part. */
static bool
is_in_the_way(const char *name, struct hed_why *why)
{
    struct hed_meet *m = NULL;
    const int err = hed_meet_look(name, &hed_sched_shape, &m, why);

    hed_meet_leave(m);
    return err != 0 && err != HED_ENOTFOUND;
}

/* Looks at what is there; true: said that something is wrong with it. */
static bool
check_meetings(struct hed_doctor *d)
{
    char begin[64];
    DIR *dir = opendir(SHM);
    const struct dirent *e;
    struct hed_why why = {""};
    bool bad = false;

    const size_t user = (size_t)snprintf(begin, sizeof begin, "heddle-%u-", (unsigned)geteuid());

    snprintf(begin + user, sizeof begin - user, HED_SCHED_BEGIN);
    while (dir && !bad && (e = readdir(dir)) != NULL)
        bad =
            strncmp(e->d_name, begin, strlen(begin)) == 0 && is_in_the_way(e->d_name + user, &why);
    if (dir)
        closedir(dir);
    if (bad) {
        hed_doctor_say(d, HED_FINDING_WARN, "sharing", "%s", why.text);
        hed_doctor_hint(d, "Programs that come there are not held. Remove the file if nobody uses "
                           "it, or use one version of heddle.");
    }
    return bad;
}

/* By meeting: it takes memory, locks of the kernel's, and a folder that can be written. */
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
        hed_doctor_say(d, HED_FINDING_WARN, "sharing", "programs cannot take turns (--sched): %s",
                       why.text);
        hed_doctor_hint(d, "They meet in /dev/shm; in a container: docker run --ipc=host, or "
                           "--shm-size=1g");
    } else if (!check_meetings(d)) {
        hed_doctor_say(d, HED_FINDING_OK, "sharing", "programs can take turns (--sched)");
    }
}

/* ---- --inject -------------------------------------------------------------------------------- */

/* Can it be loaded? Then its full path, else the reason. */
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

/* As the injected library looks for it. */
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
    struct hed_place place;
    char path[PATH_MAX];
    char found[PATH_MAX] = "";

    if (hed_place_find(&place, NULL) != 0) /* said already */
        return;
    if (!hed_place_plugin(&place, "libheddle-inject", path, sizeof path)) {
        hed_doctor_say(d, HED_FINDING_FAIL, "--inject", "there is no %s", path);
        hed_doctor_hint(d, "Install heddle again.");
    } else if (*given && !try_library(given, found, sizeof found)) {
        hed_doctor_say(d, HED_FINDING_FAIL, "--inject", "the setting `cupti` is %s: %s", given,
                       found);
        hed_doctor_hint(d, "Set it to a libcupti.so.13 or .12, or not at all.");
    } else if (!*given && !find_cupti(found, sizeof found)) {
        /* Who has no GPU does not miss it. */
        hed_doctor_say(d, gpu ? HED_FINDING_WARN : HED_FINDING_OK, "--inject",
                       "does not work here: no libcupti.so.13 or .12 was found");
        hed_doctor_hint(d, "It comes with the CUDA toolkit (NVIDIA's package cuda-cupti); name it "
                           "with the setting `cupti` where it is not found.");
    } else {
        hed_doctor_say(d, HED_FINDING_OK, "--inject", "%s, CUPTI is %s",
                       gpu ? "works" : "works where there is a GPU", found);
    }
}

void
hed_doctor_share(struct hed_doctor *d)
{
    check_sharing(d);
    check_inject(d);
}
