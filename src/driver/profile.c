/* Which devices there are: the setting `gpu` and CUDA_VISIBLE_DEVICES. See driver/profile.h;
 * profile_read.c reads the text of a profile. */
#include "driver/profile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "core/profiles.h"
#include "gen/cuda_abi.h"

/* ---- files ----------------------------------------------------------------------------------- */

struct loading {
    char folder[PATH_MAX]; /* the folder of the file that is being read */
    int depth;             /* how many files are being read, one inside the other */
};

static int load_profile(struct loading *l, const char *path, struct hed_profile *p,
                        struct hed_why *why);

/* Loads the profile that another one is based on: from the same folder, or else from heddle's
 * own. */
static int
load_base(void *arg, const char *base, struct hed_profile *p, struct hed_why *why)
{
    struct loading *l = arg;
    char folder[PATH_MAX];
    char path[PATH_MAX];
    int err = hed_profiles_file(l->folder, base, path, sizeof path, why);

    if (!err && access(path, F_OK) != 0 && hed_profiles_folder(folder, sizeof folder) == 0)
        err = hed_profiles_file(folder, base, path, sizeof path, why);
    return err ? err : load_profile(l, path, p, why);
}

static int
read_whole(int fd, char **text, size_t *size)
{
    struct stat st;
    ssize_t got = 1;
    size_t n = 0;

    *text = NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return HED_EINVAL;
    if (st.st_size > HED_PROFILE_FILE_MAX)
        return HED_ELIMIT;
    *text = malloc((size_t)st.st_size + 1);
    while (*text && got > 0 && n < (size_t)st.st_size) {
        got = read(fd, *text + n, (size_t)st.st_size - n);
        n += got > 0 ? (size_t)got : 0;
    }
    *size = n;
    return !*text ? HED_ENOMEM : got < 0 ? HED_EIO : 0;
}

static int
load_profile(struct loading *l, const char *path, struct hed_profile *p, struct hed_why *why)
{
    struct loading inner = {.depth = l->depth + 1};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *text = NULL;
    size_t size = 0;
    int err = fd < 0 ? hed_err_from_errno(errno) : read_whole(fd, &text, &size);

    if (fd >= 0)
        close(fd);
    if (!err && inner.depth > HED_PROFILE_BASES_MAX)
        err = HED_ELIMIT;
    if (err) {
        hed_why_set(why, "profile %s: %s", path, hed_err_text(err));
    } else {
        (void)hed_str_copy(inner.folder, sizeof inner.folder, path);

        char *slash = strrchr(inner.folder, '/');

        if (slash)
            *slash = '\0';
        err = hed_profile_parse(p, text, size, path, load_base, &inner, why);
    }
    free(text);
    return err;
}

/* "/a/b/c.json" is "c". */
static void
short_name(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');

    (void)hed_str_copy(out, size, slash ? slash + 1 : path);

    char *dot = strstr(out, ".json");

    if (dot)
        *dot = '\0';
}

/* Loads the profile in a file and checks that it describes a device. */
static int
load_device(const char *path, struct hed_profile *p, struct hed_why *why)
{
    struct loading l = {.depth = 0};

    memset(p, 0, sizeof *p);

    int err = load_profile(&l, path, p, why);

    if (!err)
        err = hed_profile_check(p, path, why);
    short_name(path, p->short_name, sizeof p->short_name);
    return err;
}

/* ---- devices --------------------------------------------------------------------------------- */

static uint64_t
mix_bits(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* UUIDs are the same in every process, and different for every profile and index. */
static void
make_uuid(const struct hed_profile *p, uint32_t index, uint8_t out[16])
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (const char *c = p->short_name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    for (const char *c = p->name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    for (unsigned i = 0; i < 16; i++)
        out[i] = (uint8_t)(mix_bits(hash + index * 2ull + i / 8) >> 8 * (i % 8));
    /* RFC 9562: version 4, variant 1. */
    out[6] = (uint8_t)((out[6] & 0x0f) | 0x40);
    out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

void
hed_profile_uuid_text(const uint8_t u[16], char out[HED_PROFILE_UUID_TEXT])
{
    (void)snprintf(out, HED_PROFILE_UUID_TEXT,
                   "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%"
                   "02x%02x%02x",
                   u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
                   u[13], u[14], u[15]);
}

static void
make_profile_device(const struct hed_profile *p, uint32_t index, struct hed_profile_device *out)
{
    static const unsigned places[] = {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                                      CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
                                      CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID};

    *out = (struct hed_profile_device){.profile = *p, .pci_bus = (int)index + 1, .index = index};
    make_uuid(p, index, out->uuid);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        out->profile.attributes[places[i]] = i == 0 ? out->pci_bus : 0;
        out->profile.has_attribute[places[i] / 64] |= 1ull << places[i] % 64;
    }
}

struct list {
    char folder[PATH_MAX]; /* where heddle's profiles are */
    struct hed_profile_device *out;
    size_t room, count;
};

static int
add_list_item(void *arg, const char *item, struct hed_why *why)
{
    struct list *l = arg;
    struct hed_profile *p = malloc(sizeof *p);
    char path[PATH_MAX];
    unsigned times = 0;
    int err = p ? hed_profiles_find(l->folder, item, path, sizeof path, &times, why) : HED_ENOMEM;

    if (!err)
        err = load_device(path, p, why);
    if (!err && l->count + times > l->room) {
        hed_why_set(why, "gpu: more than %zu devices", l->room);
        err = HED_ELIMIT;
    }
    for (unsigned i = 0; !err && i < times; i++) {
        make_profile_device(p, (uint32_t)l->count, &l->out[l->count]);
        l->count++;
    }
    free(p);
    return err;
}

int
hed_profile_devices(const char *setting, struct hed_profile_device *out, size_t room, size_t *count,
                    struct hed_why *why)
{
    struct list l = {.out = out, .room = room};

    /* Without the folder a profile can still be named by its path. */
    if (hed_profiles_folder(l.folder, sizeof l.folder) != 0)
        l.folder[0] = '\0';

    const int err = hed_profiles_each(setting, add_list_item, &l, why);

    if (!err)
        *count = l.count;
    return err;
}

/* ---- CUDA_VISIBLE_DEVICES -------------------------------------------------------------------- */

/* The index of the device that an entry names; -1 if it names none. A UUID may be shortened as long
 * as it fits one device only. */
static int
find_visible_entry(const struct hed_profile_device *devices, size_t count, const char *entry,
                   size_t n)
{
    char text[HED_PROFILE_UUID_TEXT];
    int found = -1;

    if (n > 0 && isdigit((unsigned char)*entry)) {
        size_t index = 0;

        for (size_t i = 0; i < n && isdigit((unsigned char)entry[i]) && index <= count; i++)
            index = index * 10 + (size_t)(entry[i] - '0');
        return index < count ? (int)index : -1;
    }
    if (n < 5 || n >= sizeof text || strncasecmp(entry, "GPU-", 4) != 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        hed_profile_uuid_text(devices[i].uuid, text);
        if (strncasecmp(text, entry, n) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}

size_t
hed_profile_visible(struct hed_profile_device *devices, size_t count, const char *visible)
{
    uint64_t seen = 0;
    size_t left = 0;

    if (!visible)
        return count;

    struct hed_profile_device *all = malloc((count ? count : 1) * sizeof *all);

    /* Without memory for a copy the list cannot be reordered, and nothing else would work
     * either. */
    if (!all)
        return 0;
    memcpy(all, devices, count * sizeof *all);
    for (const char *at = visible; at && left < count;) {
        const size_t blank = strspn(at, " \t");
        const size_t n = strcspn(at, ",");
        const int i = find_visible_entry(all, count, at + blank, n > blank ? n - blank : 0);

        if (i < 0)
            break;
        /* A device that is named twice makes all of them invisible, as on CUDA. */
        if (seen >> i & 1) {
            left = 0;
            break;
        }
        seen |= 1ull << i;
        devices[left++] = all[i];
        at = at[n] ? at + n + 1 : NULL;
    }
    free(all);
    return left;
}
