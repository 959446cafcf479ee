/* A folder of snapshots: what is in it, and the newest that can be used. See store.h. */
#include "move/file/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "move/file/store_parts.h"
#include "move/file/writer.h"

int
hed_snap_store_open(const struct hed_snap_files *files, int folder, struct hed_snap_store **out,
                    struct hed_why *why)
{
    struct hed_snap_store *s = calloc(1, sizeof *s);

    if (!s) {
        hed_why_set(why, "no memory");
        return HED_ENOMEM;
    }
    s->files = files;
    s->folder = folder;
    *out = s;
    return 0;
}

void
hed_snap_store_close(struct hed_snap_store *s)
{
    if (!s)
        return;
    free(s->known);
    free(s);
}

/* ---- names ----------------------------------------------------------------------------------- */

bool
hed_snap_is_draft(const char *name)
{
    return strstr(name, HED_SNAP_SUFFIX HED_SNAP_DRAFT) != NULL ||
           strncmp(name, HED_SNAP_HEAD HED_SNAP_DRAFT, strlen(HED_SNAP_HEAD HED_SNAP_DRAFT)) == 0;
}

bool
hed_snap_is_snapshot(const char *name)
{
    const size_t n = strlen(name), suffix = strlen(HED_SNAP_SUFFIX);

    return n > suffix && n < HED_SNAP_FILE_NAME && strcmp(name + n - suffix, HED_SNAP_SUFFIX) == 0;
}

/* ---- which file has which snapshot ----------------------------------------------------------- */

/* Names are collected first, because files are opened while nothing is listed. */
struct found {
    struct hed_snap_store *store;
    size_t drafts;
    int err;
};

static bool
note_snapshot(void *arg, const char *name)
{
    struct found *f = arg;
    struct hed_snap_store *s = f->store;

    f->drafts += hed_snap_is_draft(name);
    if (!hed_snap_is_snapshot(name))
        return true;
    if (s->known_count == HED_SNAP_STORE_MAX) {
        f->err = HED_ELIMIT;
        return false;
    }
    if (s->known_count == s->known_room) {
        const size_t room = s->known_room ? 2 * s->known_room : 16;
        struct hed_snap_known *p = realloc(s->known, room * sizeof *p);

        if (!p) {
            f->err = HED_ENOMEM;
            return false;
        }
        s->known = p;
        s->known_room = room;
    }

    struct hed_snap_known *k = &s->known[s->known_count++];

    memset(k, 0, sizeof *k);
    (void)hed_str_copy(k->name, sizeof k->name, name);
    return true;
}

/* The UUID that a file says it has; zeros if it is not a snapshot. */
static void
read_uuid(struct hed_snap_store *s, struct hed_snap_known *k)
{
    const int fd = s->files->open(s->files->state, s->folder, k->name, O_RDONLY, 0);
    struct hed_snap_about about;

    if (fd < 0)
        return;
    if (hed_snap_about_get(s->files, fd, &about) == 0)
        memcpy(k->uuid, about.uuid, sizeof k->uuid);
    (void)s->files->close(s->files->state, fd);
}

static int
look_in_folder(struct hed_snap_store *s, size_t *drafts, struct hed_why *why)
{
    struct found f = {.store = s};

    s->known_count = 0;
    if (s->files->list(s->files->state, s->folder, note_snapshot, &f) != 0)
        f.err = hed_err_from_errno(errno);
    if (f.err) {
        hed_why_set(why, "cannot read the folder: %s", hed_err_text(f.err));
        return f.err;
    }
    for (size_t i = 0; i < s->known_count; i++)
        read_uuid(s, &s->known[i]);
    *drafts = f.drafts;
    return 0;
}

int
hed_snap_store_look(struct hed_snap_store *s, struct hed_why *why)
{
    size_t drafts;

    return look_in_folder(s, &drafts, why);
}

int
hed_snap_store_home(void *store, const uint8_t uuid[HED_SNAP_UUID])
{
    const struct hed_snap_store *s = store;

    for (size_t i = 0; i < s->known_count; i++) {
        if (memcmp(s->known[i].uuid, uuid, HED_SNAP_UUID) == 0)
            return s->files->open(s->files->state, s->folder, s->known[i].name, O_RDONLY, 0);
    }
    return -1;
}

/* ---- list ------------------------------------------------------------------------------------ */

static void
read_head_file(struct hed_snap_store *s, char out[HED_SNAP_FILE_NAME])
{
    const int fd = s->files->open(s->files->state, s->folder, HED_SNAP_HEAD, O_RDONLY, 0);
    ssize_t n;

    out[0] = '\0';
    if (fd < 0)
        return;
    do {
        n = s->files->pread(s->files->state, fd, out, HED_SNAP_FILE_NAME - 1, 0);
    } while (n < 0 && errno == EINTR);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    (void)s->files->close(s->files->state, fd);
}

/* Takes what the file itself says; its homes are looked at later. */
static int
fill_entry(struct hed_snap_store *s, struct hed_snap_entry *e)
{
    const int fd = s->files->open(s->files->state, s->folder, e->name, O_RDONLY, 0);
    struct hed_snap_reader *r = NULL;
    struct hed_why why = {""};

    if (fd < 0) {
        e->err = hed_err_from_errno(errno);
        hed_why_set(&why, "cannot be opened: %s", hed_err_text(e->err));
    } else {
        e->err = hed_snap_reader_open(s->files, fd, 0, NULL, NULL, &r, &why);
    }
    (void)hed_str_copy(e->why, sizeof e->why, why.text);
    e->known = fd >= 0 && hed_snap_about_get(s->files, fd, &e->about) == 0;
    if (r) {
        e->whole = true;
        hed_snap_reader_sizes(r, &e->sizes);
        e->homes = calloc(e->sizes.homes ? e->sizes.homes : 1, sizeof *e->homes);
        for (uint32_t i = 0; e->homes && i < e->sizes.homes; i++)
            memcpy(e->homes[i], hed_snap_reader_home(r, i), HED_SNAP_UUID);
    }
    hed_snap_reader_free(r);
    if (fd >= 0)
        (void)s->files->close(s->files->state, fd);
    return e->whole && !e->homes ? HED_ENOMEM : 0;
}

static struct hed_snap_entry *
entry_of_uuid(const struct hed_snap_list *l, const uint8_t uuid[HED_SNAP_UUID])
{
    for (size_t i = 0; i < l->count; i++) {
        if (l->entries[i].whole && memcmp(l->entries[i].about.uuid, uuid, HED_SNAP_UUID) == 0)
            return &l->entries[i];
    }
    return NULL;
}

/* Finds snapshots whose homes are missing, and counts the users of homes. */
static void
connect_entries(struct hed_snap_list *l)
{
    char text[HED_SNAP_UUID_TEXT];

    for (size_t i = 0; i < l->count; i++) {
        struct hed_snap_entry *e = &l->entries[i];

        for (uint32_t k = 0; e->whole && e->err == 0 && k < e->sizes.homes; k++) {
            if (entry_of_uuid(l, e->homes[k]))
                continue;
            e->err = HED_ENOTFOUND;
            (void)snprintf(e->why, sizeof e->why, "needs snapshot %s, which is %s",
                           hed_snap_uuid_text(e->homes[k], text), "missing or damaged");
        }
        for (uint32_t k = 0; e->whole && e->err == 0 && k < e->sizes.homes; k++)
            entry_of_uuid(l, e->homes[k])->users++;
    }
}

static int
compare_entries(const void *a, const void *b)
{
    const struct hed_snap_entry *x = a, *y = b;

    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (x->about.epoch != y->about.epoch)
        return x->about.epoch > y->about.epoch ? -1 : 1;
    if (x->about.created_ns != y->about.created_ns)
        return x->about.created_ns > y->about.created_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

int
hed_snap_store_list(struct hed_snap_store *s, struct hed_snap_list *out, struct hed_why *why)
{
    struct hed_snap_list l = {0};
    int err = look_in_folder(s, &l.unfinished, why);

    if (err)
        return err;
    l.entries = calloc(s->known_count ? s->known_count : 1, sizeof *l.entries);
    err = l.entries ? 0 : HED_ENOMEM;
    read_head_file(s, l.head);
    for (size_t i = 0; i < s->known_count && err == 0; i++) {
        struct hed_snap_entry *e = &l.entries[l.count++];

        (void)hed_str_copy(e->name, sizeof e->name, s->known[i].name);
        e->head = strcmp(e->name, l.head) == 0;
        err = fill_entry(s, e);
    }
    if (err) {
        hed_why_set(why, "no memory");
        hed_snap_list_fini(&l);
        return err;
    }
    connect_entries(&l);
    qsort(l.entries, l.count, sizeof *l.entries, compare_entries);
    *out = l;
    return 0;
}

void
hed_snap_list_fini(struct hed_snap_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->entries[i].homes);
    free(l->entries);
    *l = (struct hed_snap_list){0};
}

int
hed_snap_store_epoch(struct hed_snap_store *s, uint64_t *out, struct hed_why *why)
{
    struct hed_snap_list l;
    const int err = hed_snap_store_list(s, &l, why);

    if (err)
        return err;
    *out = 1;
    for (size_t i = 0; i < l.count; i++) {
        if (l.entries[i].known && l.entries[i].about.epoch >= *out)
            *out = l.entries[i].about.epoch + 1;
    }
    hed_snap_list_fini(&l);
    return 0;
}

/* ---- get ------------------------------------------------------------------------------------- */

static int
open_named(struct hed_snap_store *s, const char *name, unsigned flags, int *fd,
           struct hed_snap_reader **out, struct hed_why *why)
{
    const int file = strchr(name, '/')
                         ? (errno = EINVAL, -1)
                         : s->files->open(s->files->state, s->folder, name, O_RDONLY, 0);

    if (file < 0) {
        const int err = hed_err_from_errno(errno);

        hed_why_set(why, "cannot open it: %s", hed_err_text(err));
        return err;
    }

    const int err = hed_snap_reader_open(s->files, file, flags, hed_snap_store_home, s, out, why);

    if (err)
        (void)s->files->close(s->files->state, file);
    else
        *fd = file;
    return err;
}

int
hed_snap_store_get(struct hed_snap_store *s, const char *name, unsigned flags, int *fd,
                   struct hed_snap_reader **out, struct hed_why *why)
{
    const int err = hed_snap_store_look(s, why);

    return err ? err : open_named(s, name, flags, fd, out, why);
}

/* Can this one be used? */
static int
try_entry(struct hed_snap_store *s, const struct hed_snap_entry *e, bool deep, int *fd,
          struct hed_snap_reader **out, struct hed_why *why)
{
    struct hed_snap_reader *r = NULL;
    int file = -1;
    int err = e->err;

    if (err)
        hed_why_set(why, "%s", e->why);
    err = err ? err : open_named(s, e->name, 0, &file, &r, why);
    err = err || !deep ? err : hed_snap_verify(r, 0, NULL, why);
    if (err == 0) {
        *fd = file;
        *out = r;
        return 0;
    }
    hed_snap_reader_free(r);
    if (file >= 0)
        (void)s->files->close(s->files->state, file);
    return err;
}

int
hed_snap_store_newest(struct hed_snap_store *s, const uint8_t *session, uint64_t before, bool deep,
                      int *fd, struct hed_snap_reader **out, char name[HED_SNAP_FILE_NAME],
                      struct hed_why *why)
{
    struct hed_why passed = {""};
    struct hed_snap_list l;
    int err = hed_snap_store_list(s, &l, why);

    if (err)
        return err;
    err = HED_ENOTFOUND;
    for (size_t i = 0; i < l.count && err; i++) {
        const struct hed_snap_entry *e = &l.entries[i];
        struct hed_why reason = {""};

        if (e->known && (e->about.epoch >= before ||
                         (session && memcmp(e->about.session, session, HED_SNAP_UUID) != 0)))
            continue;
        err = try_entry(s, e, deep, fd, out, &reason);
        if (err == 0)
            (void)hed_str_copy(name, HED_SNAP_FILE_NAME, e->name);
        else
            hed_why_set(&passed, "%s%s%s: %s", passed.text, passed.text[0] ? "; " : "", e->name,
                        reason.text);
    }
    if (err) {
        hed_why_set(why, "there is no snapshot that can be used%s%s", passed.text[0] ? ": " : "",
                    passed.text);
        err = HED_ENOTFOUND;
    } else {
        hed_why_set(why, "%s", passed.text);
    }
    hed_snap_list_fini(&l);
    return err;
}
