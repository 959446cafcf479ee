/* Finding device profiles. See core/profiles.h. */
#include "core/profiles.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "core/plugin.h"

#define ITEM_MAX 1024   /* bytes of one item of the setting */
#define NAMES_MAX 64    /* profiles that a message lists */
#define NAMES_TEXT 1024 /* bytes of that list */
#define SUFFIX ".json"
#define COMMON "base" /* what all devices have in common: a profile, but not a device */

int
hed_profiles_folder(char *out, size_t size)
{
    static const char *const folders[] = {"../share", "../../share", "../../../share"};
    char own[PATH_MAX];
    char path[PATH_MAX];
    char found[PATH_MAX];

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (hed_plugin_folder(own, sizeof own) != 0)
            break;

        const int n = snprintf(path, sizeof path, "%s/%s/heddle/devices", own, folders[i]);

        if (n > 0 && (size_t)n < sizeof path && realpath(path, found))
            return hed_str_copy(out, size, found) ? 0 : HED_ELIMIT;
    }
    if (access(HED_PROFILE_DIR, F_OK) != 0)
        return HED_ENOTFOUND;
    return hed_str_copy(out, size, HED_PROFILE_DIR) ? 0 : HED_ELIMIT;
}

/* ---- one item -------------------------------------------------------------------------------- */

/* A name is that of a file in the folder of profiles, and nothing that leaves the folder. */
static bool
is_profile_name(const char *s)
{
    return isalnum((unsigned char)*s) &&
           s[strspn(s, "abcdefghijklmnopqrstuvwxyz"
                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] == '\0';
}

int
hed_profiles_file(const char *folder, const char *name, char *path, size_t size,
                  struct hed_why *why)
{
    if (!is_profile_name(name)) {
        hed_why_set(why, "'%.64s' is not the name of a profile", name);
        return HED_EINVAL;
    }
    if ((size_t)snprintf(path, size, "%s/%s" SUFFIX, folder, name) >= size) {
        hed_why_set(why, "'%.64s': the path of the profile is too long", name);
        return HED_ELIMIT;
    }
    return 0;
}

/* Cuts "x8" off the end of an item and returns 8. 0: there is no number, -1: it is out of range. */
static int
take_count(char *item)
{
    size_t n = strlen(item);
    uint64_t count = 0;

    while (n > 0 && isdigit((unsigned char)item[n - 1]))
        n--;
    if (n < 2 || item[n - 1] != 'x' || !item[n])
        return 0;
    if (hed_parse_u64(item + n, &count) != 0 || count == 0 || count > HED_PROFILES_MAX)
        return -1;
    item[n - 1] = '\0';
    return (int)count;
}

/* Is there a file of that name or path? Puts its path into `path`. */
static bool
find_file(const char *folder, const char *item, char *path, size_t size)
{
    if (strchr(item, '/') ? !hed_str_copy(path, size, item)
                          : hed_profiles_file(folder, item, path, size, NULL) != 0)
        return false;
    return access(path, F_OK) == 0;
}

static int
is_device_file(const struct dirent *e)
{
    const size_t n = strlen(e->d_name);
    const size_t suffix = strlen(SUFFIX);

    return n > suffix && strcmp(e->d_name + n - suffix, SUFFIX) == 0 &&
           strcmp(e->d_name, COMMON SUFFIX) != 0;
}

/* The names that exist, as text: "a100-40g, a100-80g". */
static void
list_profiles(const char *folder, char *out, size_t size)
{
    struct dirent **files = NULL;
    const int count = scandir(folder, &files, is_device_file, alphasort);
    size_t at = 0;

    out[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (i < NAMES_MAX && at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%.*s", i ? ", " : "",
                                   (int)(strlen(files[i]->d_name) - strlen(SUFFIX)),
                                   files[i]->d_name);
        free(files[i]);
    }
    free(files);
}

static int
refuse_item(const char *folder, const char *item, struct hed_why *why)
{
    char names[NAMES_TEXT];

    if (strchr(item, '/')) {
        hed_why_set(why, "gpu: there is no device profile '%.512s'", item);
        return HED_ENOTFOUND;
    }
    list_profiles(folder, names, sizeof names);
    if (!*names) {
        hed_why_set(why,
                    "gpu: there is no device '%.64s', because no device profiles are in '%.256s'; "
                    "install heddle again",
                    item, folder);
        return HED_ENOTFOUND;
    }
    hed_why_set(why,
                "gpu: there is no device '%.64s'; choose from %.400s, with a number such as "
                "%.64sx8, or give the path of a profile",
                item, names, HED_PROFILES_GENERIC);
    return is_profile_name(item) ? HED_ENOTFOUND : HED_EINVAL;
}

int
hed_profiles_find(const char *folder, const char *item, char *path, size_t size, unsigned *count,
                  struct hed_why *why)
{
    char name[ITEM_MAX];
    int times = 1;

    if (!hed_str_copy(name, sizeof name, item))
        return HED_ELIMIT;
    if (!find_file(folder, name, path, size)) {
        times = take_count(name);
        if (times == 0 || (times > 0 && !find_file(folder, name, path, size)))
            return refuse_item(folder, name, why);
    }
    if (times < 0) {
        hed_why_set(why, "gpu: '%.64s': the number of devices must be from 1 to %d", item,
                    HED_PROFILES_MAX);
        return HED_ELIMIT;
    }
    *count = (unsigned)times;
    return 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

int
hed_profiles_each(const char *setting, hed_profiles_item_fn fn, void *arg, struct hed_why *why)
{
    const char *list = strchr(setting, ':');
    int err = 0;

    list = list ? list + 1 : HED_PROFILES_GENERIC;
    for (const char *at = list; at && !err;) {
        const size_t length = strcspn(at, ",");
        char item[ITEM_MAX];

        if (length == 0 || length >= sizeof item) {
            hed_why_set(why, "gpu: '%.64s' contains an empty or too long name", setting);
            return HED_EINVAL;
        }
        memcpy(item, at, length);
        item[length] = '\0';
        err = fn(arg, item, why);
        at = at[length] ? at + length + 1 : NULL;
    }
    return err;
}

struct check {
    char folder[PATH_MAX];
    unsigned count; /* devices so far */
};

static int
check_item(void *arg, const char *item, struct hed_why *why)
{
    struct check *c = arg;
    char path[PATH_MAX];
    unsigned times = 0;
    const int err = hed_profiles_find(c->folder, item, path, sizeof path, &times, why);

    c->count += times;
    if (!err && c->count > HED_PROFILES_MAX) {
        hed_why_set(why, "gpu: more than %d devices", HED_PROFILES_MAX);
        return HED_ELIMIT;
    }
    return err;
}

int
hed_profiles_check(const char *setting, struct hed_why *why)
{
    struct check c = {.count = 0};

    if (hed_profiles_folder(c.folder, sizeof c.folder) != 0)
        return 0;
    return hed_profiles_each(setting, check_item, &c, why);
}
