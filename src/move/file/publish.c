/* A folder of snapshots: one more, one written again, fewer. See store.h.
 *
 *     begin: NAME.snap.tmp-UUID  >  writer.h  >  publish: rename, sync, HEAD
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "move/file/store_parts.h"
#include "move/file/writer.h"

#define NAME_MOST 200 /* bytes; what is added must fit into a file's name */

int
hed_snap_store_lock(struct hed_snap_store *s, enum hed_snap_lock_mode mode, int *fd,
                    struct hed_why *why)
{
    const int file = s->files->open(s->files->state, s->folder, ".", O_RDONLY | O_DIRECTORY, 0);
    int err = file < 0 ? errno : 0;

    while (err == 0 && s->files->lock(s->files->state, file, mode) != 0) {
        if (errno != EINTR)
            err = errno;
    }
    if (err == 0) {
        *fd = file;
        return 0;
    }
    if (file >= 0)
        (void)s->files->close(s->files->state, file);
    if (err == EWOULDBLOCK) {
        hed_why_set(why, "another process is writing a snapshot in this folder; try again later");
        return HED_ESTATE;
    }
    hed_why_set(why, "cannot lock the folder: %s", strerror(err));
    return hed_err_from_errno(err);
}

int
hed_snap_store_set_head(struct hed_snap_store *s, const char *name,
                        const uint8_t uuid[HED_SNAP_UUID], struct hed_why *why)
{
    const struct hed_snap_files *f = s->files;
    char draft[64], id[HED_SNAP_UUID_TEXT], text[HED_SNAP_FILE_NAME + HED_SNAP_UUID_TEXT + 2];

    (void)hed_snap_uuid_text(uuid, id);
    (void)snprintf(draft, sizeof draft, "%s%s%s", HED_SNAP_HEAD, HED_SNAP_DRAFT, id);

    const int n = snprintf(text, sizeof text, "%s\n%s\n", name, id);
    int fd = f->open(f->state, s->folder, draft, O_RDWR | O_CREAT | O_EXCL, 0600);

    /* Of a process that died, or of somebody who would like another file to be overwritten. */
    if (fd < 0 && errno == EEXIST && f->remove(f->state, s->folder, draft) == 0)
        fd = f->open(f->state, s->folder, draft, O_RDWR | O_CREAT | O_EXCL, 0600);

    int err = fd < 0 ? hed_err_from_errno(errno) : 0;

    err = err ? err : hed_snap_pwrite(f, fd, text, (size_t)n, 0);
    err = err ? err : hed_snap_datasync(f, fd);
    if (fd >= 0)
        (void)f->close(f->state, fd);
    if (err == 0 && (f->rename(f->state, s->folder, draft, HED_SNAP_HEAD, true) != 0 ||
                     f->syncdir(f->state, s->folder) != 0))
        err = hed_err_from_errno(errno);
    if (err) {
        if (fd >= 0)
            (void)f->remove(f->state, s->folder, draft);
        hed_why_set(why, "cannot write HEAD: %s", hed_snap_io_text(err));
    }
    return err;
}

/* ---- one more -------------------------------------------------------------------------------- */

void
hed_snap_store_name(uint64_t epoch, const uint8_t uuid[HED_SNAP_UUID], char out[HED_SNAP_FILE_NAME])
{
    char text[HED_SNAP_UUID_TEXT];

    (void)snprintf(out, HED_SNAP_FILE_NAME, "%06" PRIu64 "-%.8s%s", epoch,
                   hed_snap_uuid_text(uuid, text), HED_SNAP_SUFFIX);
}

static int
check_new_name(const char *name, struct hed_snap_draft *d, struct hed_why *why)
{
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') || hed_snap_is_draft(name) ||
        strlen(name) > NAME_MOST) {
        hed_why_set(why, "'%.200s' cannot be the name of a snapshot", name);
        return HED_EINVAL;
    }
    (void)snprintf(d->name, sizeof d->name, "%s%s", name,
                   hed_snap_is_snapshot(name) ? "" : HED_SNAP_SUFFIX);
    return 0;
}

static bool
name_exists(struct hed_snap_store *s, const char *name)
{
    const int fd = s->files->open(s->files->state, s->folder, name, O_RDONLY, 0);

    if (fd >= 0)
        (void)s->files->close(s->files->state, fd);
    return fd >= 0 || errno != ENOENT;
}

int
hed_snap_store_begin(struct hed_snap_store *s, const char *name, const uint8_t uuid[HED_SNAP_UUID],
                     struct hed_snap_draft *out, struct hed_why *why)
{
    struct hed_snap_draft d = {.fd = -1, .lock = -1};
    char text[HED_SNAP_UUID_TEXT];
    int err = check_new_name(name, &d, why);

    err = err ? err : hed_snap_store_lock(s, HED_SNAP_LOCK_SHARED, &d.lock, why);
    if (err)
        return err;
    (void)snprintf(d.file, sizeof d.file, "%s%s%s", d.name, HED_SNAP_DRAFT,
                   hed_snap_uuid_text(uuid, text));
    if (name_exists(s, d.name)) {
        hed_why_set(why, "there is a snapshot %s already", d.name);
        err = HED_EEXIST;
    } else {
        d.fd = s->files->open(s->files->state, s->folder, d.file, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (d.fd < 0) {
            err = hed_err_from_errno(errno);
            hed_why_set(why, "cannot create %s: %s", d.file, strerror(errno));
        }
    }
    if (err)
        (void)s->files->close(s->files->state, d.lock);
    else
        *out = d;
    return err;
}

static void
close_draft(struct hed_snap_store *s, struct hed_snap_draft *d)
{
    if (d->fd >= 0)
        (void)s->files->close(s->files->state, d->fd);
    if (d->lock >= 0)
        (void)s->files->close(s->files->state, d->lock);
    d->fd = -1;
    d->lock = -1;
}

void
hed_snap_store_drop(struct hed_snap_store *s, struct hed_snap_draft *d)
{
    if (d->fd >= 0)
        (void)s->files->remove(s->files->state, s->folder, d->file);
    close_draft(s, d);
}

static int
give_final_name(struct hed_snap_store *s, const struct hed_snap_draft *d, struct hed_why *why)
{
    const struct hed_snap_files *f = s->files;

    if (f->rename(f->state, s->folder, d->file, d->name, false) != 0) {
        const int err = hed_err_from_errno(errno);

        hed_why_set(why, "cannot rename %s to %s: %s", d->file, d->name, strerror(errno));
        return err;
    }
    if (f->syncdir(f->state, s->folder) != 0) {
        const int err = hed_err_from_errno(errno);

        hed_why_set(why, "cannot sync the folder: %s", strerror(errno));
        return err;
    }
    return 0;
}

int
hed_snap_store_publish(struct hed_snap_store *s, struct hed_snap_draft *d, bool head,
                       struct hed_why *why)
{
    struct hed_snap_reader *r = NULL;
    struct hed_why inner = {""};
    uint8_t uuid[HED_SNAP_UUID];
    int err = hed_snap_reader_open(s->files, d->fd, 0, NULL, NULL, &r, &inner);

    if (err) {
        hed_why_set(why, "%s is not a finished snapshot: %s", d->file, inner.text);
        hed_snap_store_drop(s, d);
        return err;
    }
    memcpy(uuid, hed_snap_reader_about(r)->uuid, sizeof uuid);
    hed_snap_reader_free(r);
    err = give_final_name(s, d, why);
    /* HEAD is a hint: the snapshot is there without it. */
    if (err == 0 && head && hed_snap_store_set_head(s, d->name, uuid, &inner) != 0)
        hed_warn(CKPT, "%s: %s", d->name, inner.text);
    if (err)
        (void)s->files->remove(s->files->state, s->folder, d->file);
    close_draft(s, d);
    return err;
}

/* ---- one written again ----------------------------------------------------------------------- */

static int
copy_extent(const struct hed_snap_reader *r, uint32_t id, struct hed_snap_writer *w, void *piece,
            struct hed_why *why)
{
    const uint32_t n = hed_snap_chunk_count(r, id);
    uint32_t to;
    int err = hed_snap_extent_begin(w, hed_snap_extent_at(r, id), &to);

    if (err)
        hed_why_set(why, "extent %" PRIu32 ": %s", id, hed_err_text(err));
    for (uint32_t i = 0; i < n && err == 0; i++) {
        const size_t length = hed_snap_chunk_length(r, id, i);

        err = hed_snap_chunk_get(r, id, i, piece, length, why);
        if (err)
            break;
        err = hed_snap_chunk_put(w, to, i, piece, length, hed_snap_chunk_hash(r, id, i));
        if (err)
            hed_why_set(why, "%s", hed_snap_writer_reason(w));
    }
    return err;
}

static int
copy_all(struct hed_snap_store *s, const struct hed_snap_reader *r,
         const struct hed_snap_about *about, int zstd, int fd, struct hed_why *why)
{
    const struct hed_snap_how how = {.zstd = zstd};
    struct hed_snap_writer *w = NULL;
    void *piece = malloc(about->chunk_size);
    int err = piece ? 0 : HED_ENOMEM;

    if (err)
        hed_why_set(why, "no memory");
    err = err ? err : hed_snap_writer_create(s->files, fd, about, NULL, &how, &w, why);
    for (uint32_t id = 0; err == 0 && id < hed_snap_extent_count(r); id++)
        err = copy_extent(r, id, w, piece, why);
    err = err ? err : hed_snap_writer_finish(w, why);
    hed_snap_writer_free(w);
    free(piece);
    return err;
}

int
hed_snap_store_compact(struct hed_snap_store *s, const char *from, const char *name, int zstd,
                       char out_name[HED_SNAP_FILE_NAME], struct hed_why *why)
{
    struct hed_snap_draft d = {.fd = -1, .lock = -1};
    struct hed_snap_reader *r = NULL;
    char made[HED_SNAP_FILE_NAME];
    int fd = -1;
    int err = hed_snap_store_get(s, from, 0, &fd, &r, why);

    if (err)
        return err;

    struct hed_snap_about about = *hed_snap_reader_about(r);

    memset(about.parent, 0, sizeof about.parent);
    about.created_ns = 0; /* now, which makes it newer than the one with the same epoch */
    err = hed_snap_uuid_make(about.uuid);
    if (err)
        hed_why_set(why, "the system has no random numbers");
    hed_snap_store_name(about.epoch, about.uuid, made);
    err = err ? err : hed_snap_store_begin(s, name ? name : made, about.uuid, &d, why);
    if (err)
        goto out;
    (void)hed_str_copy(out_name, HED_SNAP_FILE_NAME, d.name);
    err = copy_all(s, r, &about, zstd, d.fd, why);
    if (err)
        hed_snap_store_drop(s, &d);
    else
        err = hed_snap_store_publish(s, &d, true, why);
out:
    hed_snap_reader_free(r);
    (void)s->files->close(s->files->state, fd);
    return err;
}
