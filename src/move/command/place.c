/* Where a snapshot lies, and the files that it needs. See live.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/folder.h"
#include "base/str.h"
#include "move/command/command.h"
#include "move/file/files.h"

int
hed_snap_place_open(const char *dir, bool make, struct hed_snap_folder *out, struct hed_why *why)
{
    *out = (struct hed_snap_folder){.folder = -1};

    int err = hed_path_absolute(dir, out->dir, sizeof out->dir, why);

    if (err != 0)
        return err;
    /* Of "." there should be nothing in a path that people read. */
    for (size_t n = strlen(out->dir); n > 2 && strcmp(out->dir + n - 2, "/.") == 0;
         n = strlen(out->dir))
        out->dir[n - 2] = '\0';
    if (make && mkdir(out->dir, 0700) != 0 && errno != EEXIST) {
        hed_why_set(why, "cannot make the folder %s: %s", out->dir, strerror(errno));
        return hed_err_from_errno(errno);
    }
    out->folder = open(out->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->folder < 0) {
        hed_why_set(why, "cannot open the folder %s: %s", out->dir, strerror(errno));
        return hed_err_from_errno(errno);
    }
    err = hed_snap_store_open(&hed_snap_files_real, out->folder, &out->store, why);
    if (err != 0)
        hed_snap_place_close(out);
    return err;
}

void
hed_snap_place_close(struct hed_snap_folder *p)
{
    hed_snap_store_close(p->store);
    if (p->folder >= 0)
        close(p->folder);
    p->store = NULL;
    p->folder = -1;
}

int
hed_snap_place_split(const char *path, char dir[PATH_MAX], char name[HED_SNAP_FILE_NAME],
                     struct hed_why *why)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const size_t n = slash ? (size_t)(slash - path) : 0;

    if (!base[0] || !hed_str_copy(name, HED_SNAP_FILE_NAME, base) || n >= PATH_MAX) {
        hed_why_set(why, "'%.200s' is not the name of a file", path);
        return HED_EINVAL;
    }
    if (!slash)
        (void)hed_str_copy(dir, PATH_MAX, ".");
    else if (n == 0)
        (void)hed_str_copy(dir, PATH_MAX, "/");
    else
        (void)snprintf(dir, PATH_MAX, "%.*s", (int)n, path);
    return 0;
}

/* The name of the snapshot with that UUID; NULL if there is none. */
static const char *
find_uuid(const struct hed_snap_list *l, const uint8_t *uuid)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->entries[i].known && memcmp(l->entries[i].about.uuid, uuid, HED_SNAP_UUID) == 0)
            return l->entries[i].name;
    return NULL;
}

int
hed_snap_place_homes(struct hed_snap_folder *p, const struct hed_snap_reader *r, int *fds,
                     size_t room, size_t *count, struct hed_why *why)
{
    struct hed_snap_sizes sizes;
    struct hed_snap_list list;
    char text[HED_SNAP_UUID_TEXT];
    size_t n = 0;

    hed_snap_reader_sizes(r, &sizes);
    *count = 0;
    if (sizes.homes == 0)
        return 0;
    if (sizes.homes > room) {
        hed_why_set(why, "the snapshot depends on %u others, which are too many: compact it",
                    sizes.homes);
        return HED_ELIMIT;
    }

    int err = hed_snap_store_list(p->store, &list, why);

    if (err != 0)
        return err;
    for (; err == 0 && n < sizes.homes; n++) {
        const uint8_t *uuid = hed_snap_reader_home(r, (uint32_t)n);
        const char *name = find_uuid(&list, uuid);

        fds[n] =
            name ? openat(p->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
        if (fds[n] < 0) {
            hed_why_set(why, "snapshot %s, on which this one depends, is not in %s",
                        hed_snap_uuid_text(uuid, text), p->dir);
            err = HED_ENOTFOUND;
            break;
        }
    }
    hed_snap_list_fini(&list);
    if (err != 0)
        while (n > 0)
            close(fds[--n]);
    *count = n;
    return err;
}
