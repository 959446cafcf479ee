/* Writing snapshots: a new file, a file that is continued, the parent, extents. See writer.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/crc.h"
#include "base/number.h"
#include "base/str.h"
#include "move/file/pack.h"
#include "move/file/reader_parts.h"
#include "move/file/writer_parts.h"

#define LOOKUP_LEAST 256 /* slots */

int
hed_snap_grow(void **rows, size_t *room, size_t count, size_t more, size_t row)
{
    if (count + more <= *room)
        return 0;

    const size_t wanted = hed_max(hed_max(count + more, 2 * *room), 64);
    void *p = realloc(*rows, wanted * row);

    if (!p)
        return HED_ENOMEM;
    *rows = p;
    *room = wanted;
    return 0;
}

int
hed_snap_uuid_make(uint8_t out[HED_SNAP_UUID])
{
    for (size_t done = 0; done < HED_SNAP_UUID;) {
        const ssize_t n = getrandom(out + done, HED_SNAP_UUID - done, 0);

        if (n < 0)
            return HED_EIO;
        done += (size_t)n;
    }
    out[6] = (uint8_t)((out[6] & 0x0f) | 0x40); /* RFC 9562: version 4, random */
    out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
    return 0;
}

/* ---- what is known already ------------------------------------------------------------------- */

/* The number of a home + 1, added if necessary; 0 if there are too many. */
static uint32_t
add_home(struct hed_snap_writer *w, const uint8_t uuid[HED_SNAP_UUID], uint64_t epoch)
{
    for (uint32_t i = 0; i < w->home_count; i++) {
        if (memcmp(w->homes[i].uuid, uuid, HED_SNAP_UUID) == 0)
            return i + 1;
    }
    if (w->home_count == HED_SNAP_HOMES_MAX)
        return 0;

    struct hed_snap_home_row *h = &w->homes[w->home_count];

    *h = (struct hed_snap_home_row){.epoch = epoch};
    memcpy(h->uuid, uuid, sizeof h->uuid);
    return ++w->home_count;
}

/* Puts the chunks of a snapshot into the index. homes[i]: our number of its home i; homes[0]: of
 * its own file. */
static int
index_chunks(struct hed_snap_writer *w, const struct hed_snap_reader *r, const uint32_t *homes)
{
    for (uint32_t id = 0; id < r->footer.extents; id++) {
        const uint64_t n = hed_divide_up(r->extents[id].size, r->super.chunk_size);

        for (uint64_t i = 0; i < n; i++) {
            const struct hed_snap_chunk_row *c = &r->chunks[r->extent_rows[id].first + i];
            const struct hed_snap_place place = {
                .hash = {{c->hash[0], c->hash[1]}},
                .size = hed_snap_length(&r->extents[id], r->super.chunk_size, i),
                .home = c->home == HED_SNAP_ZEROS ? 0 : homes[c->home],
                .blob = c->blob};

            if (c->home != HED_SNAP_ZEROS && hed_snap_index_put(&w->index, &place) != 0)
                return HED_ENOMEM;
        }
    }
    return 0;
}

static int
take_parent(struct hed_snap_writer *w, const struct hed_snap_reader *parent, struct hed_why *why)
{
    uint32_t homes[HED_SNAP_HOMES_MAX + 1];

    if (memcmp(parent->super.uuid, w->super.uuid, HED_SNAP_UUID) == 0) {
        hed_why_set(why, "a snapshot cannot be its own parent");
        return HED_EINVAL;
    }
    homes[0] = add_home(w, parent->super.uuid, parent->super.epoch);
    for (uint32_t i = 0; i < parent->footer.homes; i++)
        homes[i + 1] = add_home(w, parent->home_rows[i].uuid, parent->home_rows[i].epoch);
    for (uint32_t i = 0; i <= parent->footer.homes; i++) {
        if (homes[i])
            continue;
        hed_why_set(why, "the previous snapshot already depends on %u others; compact it first",
                    parent->footer.homes);
        return HED_ELIMIT;
    }
    if (index_chunks(w, parent, homes) != 0) {
        hed_why_set(why, "not enough memory for the tables of the previous snapshot");
        return HED_ENOMEM;
    }
    return 0;
}

/* ---- extents --------------------------------------------------------------------------------- */

static struct hed_snap_extent
extent_of_row(const struct hed_snap_writer *w, uint32_t id)
{
    const struct hed_snap_extent_row *e = &w->extents[id];

    return (struct hed_snap_extent){.kind = e->kind,
                                    .device = e->device,
                                    .key = e->key,
                                    .context = e->context,
                                    .name = hed_buf_cstr(&w->names) + e->name};
}

/* The slot of an extent in the lookup table: its own, or the free one where it would go. */
static uint32_t *
lookup_slot(const struct hed_snap_writer *w, uint32_t *slots, size_t room,
            const struct hed_snap_extent *e)
{
    uint64_t h = (e->key ^ e->context << 32 ^ e->kind) * UINT64_C(0x9e3779b97f4a7c15);

    h ^= hed_str_hash(e->name, strlen(e->name)) + ((uint64_t)e->device << 40);
    h = (h ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15);

    size_t at = (h >> 24) & (room - 1);

    while (slots[at]) {
        const struct hed_snap_extent other = extent_of_row(w, slots[at] - 1);

        if (hed_snap_extent_compare(e, &other) == 0)
            break;
        at = (at + 1) & (room - 1);
    }
    return &slots[at];
}

static int
grow_lookup(struct hed_snap_writer *w)
{
    const size_t room = w->lookup_room ? 2 * w->lookup_room : LOOKUP_LEAST;
    uint32_t *slots = calloc(room, sizeof *slots);

    if (!slots)
        return HED_ENOMEM;
    for (size_t i = 0; i < w->lookup_room; i++) {
        if (w->lookup[i]) {
            const struct hed_snap_extent e = extent_of_row(w, w->lookup[i] - 1);

            *lookup_slot(w, slots, room, &e) = w->lookup[i];
        }
    }
    free(w->lookup);
    w->lookup = slots;
    w->lookup_room = room;
    return 0;
}

/* Adds the row, and its chunks as not put. The name is in w->names already. */
static int
add_extent_row(struct hed_snap_writer *w, const struct hed_snap_extent_row *row, uint64_t chunks)
{
    if (2 * ((size_t)w->extent_count + 1) > w->lookup_room && grow_lookup(w) != 0)
        return HED_ENOMEM;
    if (hed_snap_grow((void **)&w->extents, &w->extent_room, w->extent_count, 1,
                      sizeof *w->extents) != 0 ||
        hed_snap_grow((void **)&w->chunks, &w->chunk_room, w->chunk_count, chunks,
                      sizeof *w->chunks) != 0)
        return HED_ENOMEM;
    w->extents[w->extent_count] = *row;

    const struct hed_snap_extent e = extent_of_row(w, w->extent_count);

    for (uint64_t i = 0; i < chunks; i++)
        w->chunks[w->chunk_count + i] = (struct hed_snap_chunk_row){.home = HED_SNAP_NOT_PUT};
    w->chunk_count += (uint32_t)chunks;
    w->content += row->size;
    *lookup_slot(w, w->lookup, w->lookup_room, &e) = ++w->extent_count;
    return 0;
}

int
hed_snap_extent_begin(struct hed_snap_writer *w, const struct hed_snap_extent *e, uint32_t *id)
{
    struct hed_snap_extent wanted = *e;
    const uint64_t chunks = hed_divide_up(e->size, w->super.chunk_size);

    wanted.name = e->name ? e->name : "";

    const size_t length = strlen(wanted.name);

    if (w->err || w->finished)
        return w->err ? w->err : HED_ESTATE;
    if (hed_snap_check_name(e->kind, wanted.name, length, NULL) != 0 || e->mode & ~07777u)
        return HED_EINVAL;
    if (e->size > HED_SNAP_EXTENT_MAX || chunks > HED_SNAP_CHUNKS_MAX - w->chunk_count ||
        w->extent_count == HED_SNAP_EXTENTS_MAX)
        return HED_ELIMIT;
    if (w->lookup_room && *lookup_slot(w, w->lookup, w->lookup_room, &wanted))
        return HED_EEXIST;

    const struct hed_snap_extent_row row = {.kind = e->kind,
                                            .device = e->device,
                                            .key = e->key,
                                            .context = e->context,
                                            .size = e->size,
                                            .first = w->chunk_count,
                                            .name = (uint32_t)w->names.size,
                                            .name_bytes = (uint32_t)length,
                                            .mode = e->mode};

    hed_buf_add(&w->names, wanted.name, length + 1);
    if (w->names.err || add_extent_row(w, &row, chunks) != 0)
        return hed_snap_writer_fail(w, w->names.err ? w->names.err : HED_ENOMEM, "an extent");
    *id = w->extent_count - 1;
    return 0;
}

/* ---- begin ----------------------------------------------------------------------------------- */

static uint64_t
wall_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int
check_about(struct hed_snap_about *a, struct hed_why *why)
{
    if (a->chunk_size == 0)
        a->chunk_size = HED_SNAP_CHUNK;
    if (a->chunk_size < HED_SNAP_CHUNK_LEAST || a->chunk_size > HED_SNAP_CHUNK_MOST ||
        a->chunk_size & (a->chunk_size - 1)) {
        hed_why_set(why, "chunks of %u bytes are not possible", a->chunk_size);
        return HED_EINVAL;
    }
    if (a->created_ns == 0)
        a->created_ns = wall_ns();
    if (!hed_snap_uuid_is_zero(a->uuid) || hed_snap_uuid_make(a->uuid) == 0)
        return 0;
    hed_why_set(why, "the system has no random numbers");
    return HED_EIO;
}

static void
fill_super(struct hed_snap_super *s, const struct hed_snap_about *a)
{
    memset(s, 0, sizeof *s);
    memcpy(s->magic, HED_SNAP_MAGIC, sizeof s->magic);
    s->major = HED_SNAP_MAJOR;
    s->minor = HED_SNAP_MINOR;
    s->bytes = HED_SNAP_BLOCK;
    memcpy(s->uuid, a->uuid, sizeof s->uuid);
    memcpy(s->parent, a->parent, sizeof s->parent);
    memcpy(s->session, a->session, sizeof s->session);
    s->epoch = a->epoch;
    s->created_ns = a->created_ns;
    s->heap_base = a->heap_base;
    s->heap_size = a->heap_size;
    s->chunk_size = a->chunk_size;
    s->pid = a->pid;
    (void)snprintf(s->backend, sizeof s->backend, "%.31s", a->backend);
    (void)snprintf(s->arch, sizeof s->arch, "%.31s", a->arch);
    (void)snprintf(s->device, sizeof s->device, "%.95s", a->device);
    (void)snprintf(s->address, sizeof s->address, "%.255s", a->address);
    (void)snprintf(s->program, sizeof s->program, "%.255s", a->program);
    (void)snprintf(s->label, sizeof s->label, "%.127s", a->label);
    s->crc = hed_crc32c(0, s, offsetof(struct hed_snap_super, crc));
}

static struct hed_snap_writer *
writer_alloc(const struct hed_snap_files *files, int fd, const struct hed_snap_how *how,
             struct hed_why *why, int *err)
{
    struct hed_snap_writer *w = calloc(1, sizeof *w);

    *err = w ? 0 : HED_ENOMEM;
    if (!w) {
        hed_why_set(why, "no memory");
        return NULL;
    }
    hed_lock_init(&w->lock, HED_RANK_SNAP);
    hed_buf_init(&w->names, HED_SNAP_NAMES_MAX);
    w->files = files;
    w->fd = fd;
    if (how)
        w->how = *how;
    if (w->how.zstd && !hed_snap_has_zstd()) {
        hed_why_set(why, "packing needs zstd, which this heddle was built without");
        *err = HED_ENOTSUP;
    }
    return w;
}

int
hed_snap_writer_create(const struct hed_snap_files *files, int fd,
                       const struct hed_snap_about *about, const struct hed_snap_reader *parent,
                       const struct hed_snap_how *how, struct hed_snap_writer **out,
                       struct hed_why *why)
{
    int err;
    struct hed_snap_writer *w = writer_alloc(files, fd, how, why, &err);

    if (err)
        goto out;
    w->about = *about;
    err = check_about(&w->about, why);
    if (err)
        goto out;
    if (parent)
        memcpy(w->about.parent, parent->super.uuid, HED_SNAP_UUID);
    fill_super(&w->super, &w->about);
    w->end = HED_SNAP_BLOCK;
    hed_snap_hash_zeros(w->super.chunk_size, &w->zeros);
    err = parent ? take_parent(w, parent, why) : 0;
    if (err)
        goto out;
    err = hed_snap_pwrite(files, fd, &w->super, sizeof w->super, 0);
    if (err)
        hed_why_set(why, "cannot write the snapshot: %s", hed_snap_io_text(err));
out:
    if (err)
        hed_snap_writer_free(w);
    else
        *out = w;
    return err;
}

/* Takes over everything that is in the file. */
static int
take_content(struct hed_snap_writer *w, const struct hed_snap_reader *r)
{
    uint32_t homes[HED_SNAP_HOMES_MAX + 1] = {HED_SNAP_HERE};

    if (hed_snap_grow((void **)&w->blobs, &w->blob_room, 0, r->footer.blobs, sizeof *w->blobs) != 0)
        return HED_ENOMEM;
    if (r->footer.blobs)
        memcpy(w->blobs, r->blobs, r->footer.blobs * sizeof *w->blobs);
    w->blob_count = r->footer.blobs;
    w->stored = r->footer.stored;
    w->needs = r->footer.needs;
    for (uint32_t i = 0; i < r->footer.homes; i++)
        homes[i + 1] = add_home(w, r->home_rows[i].uuid, r->home_rows[i].epoch);
    hed_buf_add(&w->names, r->names, r->footer.names);
    if (w->names.err)
        return w->names.err;
    for (uint32_t i = 0; i < r->footer.extents; i++) {
        const uint64_t n = hed_divide_up(r->extents[i].size, r->super.chunk_size);

        if (add_extent_row(w, &r->extent_rows[i], n) != 0)
            return HED_ENOMEM;
    }
    if (r->footer.chunks)
        memcpy(w->chunks, r->chunks, r->footer.chunks * sizeof *w->chunks);
    return index_chunks(w, r, homes);
}

int
hed_snap_writer_append(const struct hed_snap_files *files, int fd,
                       const struct hed_snap_reader *parent, const struct hed_snap_how *how,
                       struct hed_snap_writer **out, struct hed_why *why)
{
    struct hed_snap_reader *r = NULL;
    int err;
    struct hed_snap_writer *w = writer_alloc(files, fd, how, why, &err);

    err = err ? err : hed_snap_reader_open(files, fd, HED_SNAP_OPEN_PARTIAL, NULL, NULL, &r, why);
    if (err)
        goto out;
    w->super = r->super;
    w->about = r->about;
    w->end = r->file_bytes;
    hed_snap_hash_zeros(w->super.chunk_size, &w->zeros);
    err = take_content(w, r);
    if (err)
        hed_why_set(why, "not enough memory for the tables of the file");
    err = err || !parent ? err : take_parent(w, parent, why);
    /* What a writer before us left behind the last footer goes first. */
    if (err == 0 && files->truncate(files->state, fd, w->end) != 0) {
        hed_why_set(why, "the file cannot be continued: it is read-only");
        err = HED_EACCESS;
    }
    if (err == 0)
        w->start = w->end;
out:
    hed_snap_reader_free(r);
    if (err)
        hed_snap_writer_free(w);
    else
        *out = w;
    return err;
}

void
hed_snap_writer_free(struct hed_snap_writer *w)
{
    if (!w)
        return;
    if (w->start && !w->finished)
        (void)!w->files->truncate(w->files->state, w->fd, w->start);
    while (w->packers) {
        struct hed_snap_packer *p = w->packers;

        w->packers = p->next;
        hed_snap_packer_free(p);
    }
    hed_snap_index_fini(&w->index);
    hed_buf_fini(&w->names);
    hed_lock_fini(&w->lock);
    free(w->lookup);
    free(w->chunks);
    free(w->extents);
    free(w->blobs);
    free(w);
}

const struct hed_snap_about *
hed_snap_writer_about(const struct hed_snap_writer *w)
{
    return &w->about;
}

uint64_t
hed_snap_writer_bytes(const struct hed_snap_writer *w)
{
    return w->end;
}
