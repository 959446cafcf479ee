/* The doctor says which CUDA runtime programs get (`heddle run --cudart`). */
#include <gnu/libc-version.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "cli/runtime.h"
#include "locate/install.h"
#include "locate/ldcache.h"

/* Versions of CUDA runtimes that NVIDIA's packages may have put into the loader's cache. */
static const char *const versions[] = {"8.0",  "9.0",  "9.1",  "9.2", "10.0",
                                       "10.1", "10.2", "11.0", "12",  "13"};

static void
add_cached(void *arg, const char *path)
{
    struct hed_buf *b = arg;

    hed_buf_addf(b, "%s%s", b->size ? ", " : "", path);
}

/* Adds the paths of the runtimes that every program finds, whatever its own search path is. */
static void
list_cached(struct hed_buf *b)
{
    char name[64];

    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        snprintf(name, sizeof name, "libcudart.so.%s", versions[i]);
        (void)hed_ldcache_each(name, add_cached, b);
    }
}

/* Does the loader ask audit libraries without making calls slower (audit/cudart.c)? */
static bool
has_cheap_audit(void)
{
    int major = 0, minor = 0;

    return sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) == 2 &&
           (major > 2 || (major == 2 && minor >= 35));
}

static void
say_auto(struct hed_doctor *d, const char *ours, const char *cached)
{
    if (!*ours || !has_cheap_audit())
        hed_doctor_say(d, HED_FINDING_OK, "CUDA runtime",
                       "auto: a program gets the one that it finds (in the loader's cache: %s); "
                       "none of heddle's, %s",
                       cached,
                       *ours ? "because this C library is older than glibc 2.35"
                             : "because none are installed");
    else
        hed_doctor_say(d, HED_FINDING_OK, "CUDA runtime",
                       "auto: a program gets the one that it finds (in the loader's cache: %s), or "
                       "heddle's if it finds none: %s",
                       cached, ours);
}

void
hed_doctor_cudart(struct hed_doctor *d)
{
    const char *mode = d->config.cudart;
    struct hed_install install;
    struct hed_why why = {""};
    struct hed_buf cached;
    char ours[128];

    /* Then the libraries are missing, which has been said. */
    if (hed_install_find(&install, &why) != 0)
        return;
    hed_runtime_list(&install, ours, sizeof ours);
    hed_buf_init(&cached, 512);
    list_cached(&cached);

    const char *found = cached.err ? "many" : cached.size ? hed_buf_cstr(&cached) : "none";

    if (strcmp(mode, "auto") == 0) {
        say_auto(d, ours, found);
    } else if (strcmp(mode, "nvidia") == 0) {
        hed_doctor_say(d, HED_FINDING_OK, "CUDA runtime",
                       "nvidia: a program gets the one that it finds (in the loader's cache: %s), "
                       "never heddle's",
                       found);
    } else if (*ours) {
        hed_doctor_say(d, HED_FINDING_OK, "CUDA runtime",
                       "own: a program gets heddle's in place of NVIDIA's: %s", ours);
    } else {
        hed_doctor_say(d, HED_FINDING_FAIL, "CUDA runtime",
                       "own: there are no CUDA runtimes of heddle's in %s/cudart", install.dir);
        hed_doctor_hint(d, "Install heddle again, or set cudart to auto.");
    }
    hed_buf_fini(&cached);
}
