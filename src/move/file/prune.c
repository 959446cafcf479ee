/* A folder of snapshots: removing what is not wanted any more. See store.h.
 *
 * A snapshot goes if its session has `keep` newer ones that can be used, and if none of those that
 * stay has it as a home. Homes are named directly, so nothing else has to be followed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "move/file/store_parts.h"

enum fate {
    FATE_STAYS,
    FATE_GOES,
    FATE_NEEDED, /* would go, but is a home */
};

/* The entries are the newest first. */
static uint32_t
usable_newer(const struct hed_snap_list *l, size_t i)
{
    uint32_t n = 0;

    for (size_t k = 0; k < i; k++) {
        if (l->entries[k].err == 0 &&
            memcmp(l->entries[k].about.session, l->entries[i].about.session, HED_SNAP_UUID) == 0)
            n++;
    }
    return n;
}

static void
choose_fates(const struct hed_snap_list *l, uint32_t keep, bool damaged, enum fate *fates)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct hed_snap_entry *e = &l->entries[i];
        const bool old = e->known && usable_newer(l, i) >= keep;

        fates[i] = old || (damaged && e->err) ? FATE_GOES : FATE_STAYS;
    }
    for (size_t i = 0; i < l->count; i++) {
        const struct hed_snap_entry *e = &l->entries[i];

        for (uint32_t h = 0; fates[i] == FATE_STAYS && e->whole && h < e->sizes.homes; h++) {
            for (size_t k = 0; k < l->count; k++) {
                if (fates[k] == FATE_GOES && l->entries[k].known &&
                    memcmp(l->entries[k].about.uuid, e->homes[h], HED_SNAP_UUID) == 0)
                    fates[k] = FATE_NEEDED;
            }
        }
    }
}

/* HEAD must name one that stays before others go. */
static int
settle_head(struct hed_snap_store *s, const struct hed_snap_list *l, const enum fate *fates,
            struct hed_why *why)
{
    bool any = false;

    for (size_t i = 0; i < l->count; i++)
        any = any || fates[i] == FATE_GOES;
    if (!any || !l->head[0])
        return 0;
    for (size_t i = 0; i < l->count; i++) {
        const struct hed_snap_entry *e = &l->entries[i];

        if (fates[i] != FATE_STAYS || e->err)
            continue;
        return e->head ? 0 : hed_snap_store_set_head(s, e->name, e->about.uuid, why);
    }
    return 0;
}

struct sweep {
    struct hed_snap_store *store;
    bool dry;
    void (*gone)(void *arg, const char *name);
    void *arg;
    struct hed_snap_pruned *out;
    char (*names)[HED_SNAP_FILE_NAME + 48]; /* owned */
    size_t count;
    int err;
};

static int
sweep_file(struct sweep *w, const char *name, struct hed_why *why)
{
    const struct hed_snap_files *f = w->store->files;

    if (!w->dry && f->remove(f->state, w->store->folder, name) != 0) {
        hed_why_set(why, "cannot remove %s: %s", name, strerror(errno));
        return hed_err_from_errno(errno);
    }
    if (w->gone)
        w->gone(w->arg, name);
    return 0;
}

static bool
note_draft(void *arg, const char *name)
{
    struct sweep *w = arg;

    if (!hed_snap_is_draft(name) || strlen(name) >= sizeof w->names[0])
        return true;

    void *p = realloc(w->names, (w->count + 1) * sizeof w->names[0]);

    if (!p || w->count == HED_SNAP_STORE_MAX) {
        w->err = HED_ENOMEM;
        return false;
    }
    w->names = p;
    memcpy(w->names[w->count++], name, strlen(name) + 1);
    return true;
}

/* No process writes while we have the lock, so every unfinished file is a dead process's. */
static int
sweep_drafts(struct sweep *w, struct hed_why *why)
{
    const struct hed_snap_files *f = w->store->files;
    int err = 0;

    if (f->list(f->state, w->store->folder, note_draft, w) != 0)
        w->err = hed_err_from_errno(errno);
    if (w->err) {
        hed_why_set(why, "cannot read the folder: %s", hed_err_text(w->err));
        err = w->err;
    }
    for (size_t i = 0; i < w->count && err == 0; i++) {
        err = sweep_file(w, w->names[i], why);
        w->out->unfinished += err == 0;
    }
    free(w->names);
    w->names = NULL;
    return err;
}

/* The newest first, so that a home never goes before what needs it. */
static int
sweep_snapshots(struct sweep *w, const struct hed_snap_list *l, const enum fate *fates,
                struct hed_why *why)
{
    int err = 0;

    for (size_t i = 0; i < l->count && err == 0; i++) {
        if (fates[i] != FATE_GOES) {
            w->out->kept++;
            w->out->needed += fates[i] == FATE_NEEDED;
            continue;
        }
        err = sweep_file(w, l->entries[i].name, why);
        if (err == 0) {
            w->out->removed++;
            w->out->bytes += l->entries[i].sizes.file;
        }
    }
    return err;
}

int
hed_snap_store_prune(struct hed_snap_store *s, uint32_t keep, bool damaged, bool dry,
                     void (*gone)(void *arg, const char *name), void *arg,
                     struct hed_snap_pruned *out, struct hed_why *why)
{
    struct hed_snap_pruned pruned = {0};
    struct sweep w = {.store = s, .dry = dry, .gone = gone, .arg = arg, .out = &pruned};
    struct hed_snap_list l = {0};
    enum fate *fates = NULL;
    int lock = -1;
    int err = hed_snap_store_lock(s, HED_SNAP_LOCK_ALONE, &lock, why);

    err = err ? err : hed_snap_store_list(s, &l, why);
    if (err)
        goto out;
    fates = calloc(l.count ? l.count : 1, sizeof *fates);
    if (!fates) {
        hed_why_set(why, "no memory");
        err = HED_ENOMEM;
        goto out;
    }
    choose_fates(&l, keep ? keep : 1, damaged, fates);
    err = dry ? 0 : settle_head(s, &l, fates, why);
    err = err ? err : sweep_snapshots(&w, &l, fates, why);
    err = err ? err : sweep_drafts(&w, why);
    if (err == 0 && !dry && s->files->syncdir(s->files->state, s->folder) != 0) {
        err = hed_err_from_errno(errno);
        hed_why_set(why, "cannot sync the folder: %s", hed_err_text(err));
    }
    if (out)
        *out = pruned;
out:
    free(fates);
    hed_snap_list_fini(&l);
    if (lock >= 0)
        (void)s->files->close(s->files->state, lock);
    return err;
}
