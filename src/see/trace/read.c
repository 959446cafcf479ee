/* Opens a trace: walks over its blocks and keeps what the other functions need.
 *
 * Invariants:
 * 1. Every block in the table lies inside the file and was sound when it was added. Its size covers
 *    only complete records.
 * 2. A trace does not change after open, so several threads can read it.
 */
#include "see/trace/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "see/trace/block.h"
#include "see/trace/record.h"
#include "see/trace/schema.h"

/* A block of records. */
struct chunk {
    uint64_t at; /* bytes into the file: its payload */
    uint64_t thread;
    uint32_t size; /* bytes of complete records */
};

struct thread {
    uint64_t id;
    const char *name; /* NULL: none; in the arena */
    size_t order;     /* the later of two names counts */
};

struct info {
    const char *key;
    const char *value;
    struct info *next;
};

struct hed_trace {
    const uint8_t *file;
    size_t size;
    bool mapped;    /* file is ours to unmap */
    uint16_t major; /* of the format */
    struct hed_trace_state state;
    struct hed_arena arena;
    struct chunk *chunks; /* owned */
    size_t chunk_count;
    size_t chunk_room;
    struct thread *threads; /* owned; sorted by id once open */
    size_t thread_count;
    size_t thread_room;
    struct info *info;                                   /* newest first */
    const struct hed_schema *schemas[HED_TRACE_API_MAX]; /* NULL: not understood */
    unsigned schema_count;
    bool schemas_unsure; /* one may be missing, so the numbers of later ones are not certain */
};

/* ---- opening --------------------------------------------------------------------------------- */

/* Makes room for one more item in an array. False if there is no memory. */
static bool
grow_array(void **array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;

    const size_t more = *capacity ? *capacity * 2 : 64;
    void *p = reallocarray(*array, more, size);

    if (!p)
        return false;
    *array = p;
    *capacity = more;
    return true;
}

static const char *
copy_text(struct hed_trace *t, const void *p, size_t n)
{
    char *s = hed_arena_alloc(&t->arena, n + 1, 1);

    if (!s)
        return NULL;
    if (n)
        memcpy(s, p, n);
    s[n] = '\0';
    return s;
}

static int
add_thread(struct hed_trace *t, uint64_t id, const char *name)
{
    /* Blocks of one thread often follow each other. */
    if (!name && t->thread_count && t->threads[t->thread_count - 1].id == id)
        return 0;

    void *array = t->threads;

    if (!grow_array(&array, t->thread_count, &t->thread_room, sizeof(*t->threads)))
        return HED_ENOMEM;
    t->threads = array;
    t->threads[t->thread_count] = (struct thread){id, name, t->thread_count};
    t->thread_count++;
    return 0;
}

static void
add_info(struct hed_trace *t, const struct hed_trace_block *b)
{
    const char *p = (const char *)b->payload;
    const char *end = p + b->size;

    while (p < end) {
        const char *line = p;
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const size_t n = (size_t)((stop ? stop : end) - line);
        const char *equals = memchr(line, '=', n);

        p = stop ? stop + 1 : end;
        if (!equals)
            continue;

        struct info *i = hed_arena_alloc(&t->arena, sizeof(*i), _Alignof(struct info));

        if (!i)
            return;
        i->key = copy_text(t, line, (size_t)(equals - line));
        i->value = copy_text(t, equals + 1, (size_t)(line + n - equals - 1));
        if (!i->key || !i->value)
            return;
        i->next = t->info;
        t->info = i;
    }
}

static void
add_schema(struct hed_trace *t, const struct hed_trace_block *b)
{
    const struct hed_schema *s = NULL;

    if (t->schema_count == HED_TRACE_API_MAX || t->schemas_unsure)
        return;
    /* After a failure its calls have no names; everything else can be read. */
    if (b && hed_schema_parse((const char *)b->payload, b->size, &t->arena, &s, NULL) != 0)
        s = NULL;
    t->schemas[t->schema_count++] = s;
}

/* Counts a block's records. Returns how many bytes of complete records it has. */
static uint32_t
count_block(struct hed_trace *t, const struct hed_trace_block *b, uint64_t *dropped)
{
    struct hed_trace_state *s = &t->state;
    struct hed_trace_record r;
    uint32_t at = 0;
    size_t n;

    while ((n = hed_trace_get_record(b->payload + at, b->size - at, t->major, b->thread, &r)) !=
           0) {
        const uint64_t end = r.start + r.duration;
        uint64_t lost = 0;

        if (r.kind == HED_TRACE_DROPPED && r.body_size >= sizeof(lost))
            memcpy(&lost, r.body, sizeof(lost));
        *dropped += lost;
        if (s->records == 0 || r.start < s->first)
            s->first = r.start;
        if (end > s->last && end >= r.start)
            s->last = end;
        s->records++;
        s->activities += r.kind == HED_TRACE_ACTIVITY;
        at += (uint32_t)n;
    }
    return at;
}

static int
add_records(struct hed_trace *t, const struct hed_trace_block *b, uint64_t *dropped)
{
    const uint32_t whole = count_block(t, b, dropped);
    void *array = t->chunks;

    if (whole < b->size) {
        t->state.blocks_bad++;
        t->state.bytes_lost += b->size - whole;
    }
    if (whole == 0)
        return 0;
    if (t->chunk_count == HED_TRACE_BLOCKS_MAX)
        return HED_ELIMIT;
    if (!grow_array(&array, t->chunk_count, &t->chunk_room, sizeof(*t->chunks)))
        return HED_ENOMEM;
    t->chunks = array;
    t->chunks[t->chunk_count++] = (struct chunk){
        .at = (uint64_t)(b->payload - t->file),
        .thread = b->thread,
        .size = whole,
    };
    return add_thread(t, b->thread, NULL);
}

static void
add_end(struct hed_trace *t, const struct hed_trace_block *b)
{
    if (b->size < 16)
        return;
    memcpy(&t->state.end_records, b->payload, 8);
    memcpy(&t->state.end_dropped, b->payload + 8, 8);
    t->state.ended = true;
}

static int
take_block(struct hed_trace *t, const struct hed_trace_block *b, uint64_t *dropped)
{
    const char *name;

    switch (b->type) {
    case HED_TRACE_INFO:
        add_info(t, b);
        return 0;
    case HED_TRACE_SCHEMA:
        add_schema(t, b);
        return 0;
    case HED_TRACE_RECORDS:
        return add_records(t, b, dropped);
    case HED_TRACE_THREAD:
        name = copy_text(t, b->payload, b->size);
        return name ? add_thread(t, b->thread, name) : 0;
    case HED_TRACE_END:
        add_end(t, b);
        return 0;
    default:
        return 0; /* of a later version */
    }
}

static int
by_id(const void *a, const void *b)
{
    const struct thread *x = a;
    const struct thread *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Keeps one entry for each thread, with the last name that it had. */
static void
settle_threads(struct hed_trace *t)
{
    size_t n = 0;

    if (t->thread_count)
        qsort(t->threads, t->thread_count, sizeof(*t->threads), by_id);
    for (size_t i = 0; i < t->thread_count; i++) {
        const struct thread *from = &t->threads[i];

        if (n == 0 || t->threads[n - 1].id != from->id)
            t->threads[n++] = *from;
        else if (from->name)
            t->threads[n - 1].name = from->name;
    }
    t->thread_count = n;
    t->state.threads = n;
}

static int
walk_blocks(struct hed_trace *t)
{
    struct hed_trace_block_scan scan =
        hed_trace_block_begin(t->file, t->size, HED_TRACE_FILE_HEADER);
    struct hed_trace_state *s = &t->state;
    struct hed_trace_block b;
    uint64_t dropped = 0;
    int err = 0;

    while (!err && hed_trace_block_next(&scan, &b)) {
        if (scan.gap && scan.gap_type == HED_TRACE_SCHEMA)
            add_schema(t, NULL);
        else if (scan.gap && scan.gap_type == 0 && t->chunk_count == 0)
            t->schemas_unsure = true;
        s->blocks++;
        err = take_block(t, &b, &dropped);
    }
    settle_threads(t);
    s->size = t->size;
    s->blocks_bad += scan.bad;
    s->bytes_lost += scan.lost;
    s->bytes_cut = scan.cut;
    s->dropped = dropped > s->end_dropped ? dropped : s->end_dropped;

    const uint64_t begun = hed_trace_info_u64(t, "clock_mono");

    s->zero = begun && (begun <= s->first || s->records == 0) ? begun : s->first;
    return err;
}

static int
check_file_header(const uint8_t *p, size_t size, uint16_t *version, struct hed_why *why)
{
    uint16_t major;

    if (size == 0) {
        hed_why_set(why, "the file is empty");
        return HED_EFORMAT;
    }
    if (size < HED_TRACE_FILE_HEADER || memcmp(p, HED_TRACE_MAGIC, 8) != 0) {
        hed_why_set(why, "not a heddle trace");
        return HED_EFORMAT;
    }
    memcpy(&major, p + 8, sizeof(major));
    if (major > HED_TRACE_MAJOR) {
        hed_why_set(why, "the trace has format version %u, this heddle reads up to %u", major,
                    HED_TRACE_MAJOR);
        return HED_EVERSION;
    }
    *version = major;
    return 0;
}

static int
open_over(const uint8_t *p, size_t size, bool mapped, struct hed_trace **out, struct hed_why *why)
{
    struct hed_trace *t = NULL;
    uint16_t major = 0;
    int err = check_file_header(p, size, &major, why);

    if (!err) {
        t = calloc(1, sizeof(*t));
        err = t ? 0 : HED_ENOMEM;
    }
    if (!err) {
        t->file = p;
        t->size = size;
        t->major = major;
        hed_arena_init(&t->arena, HED_TRACE_META_MAX);
        err = walk_blocks(t);
    }
    if (err) {
        if (err == HED_ENOMEM || err == HED_ELIMIT)
            hed_why_set(why, "%s", hed_err_text(err));
        hed_trace_close(t);
        return err;
    }
    t->mapped = mapped;
    *out = t;
    return 0;
}

int
hed_trace_open_memory(const void *p, size_t size, struct hed_trace **out, struct hed_why *why)
{
    return open_over(p, size, false, out, why);
}

/* Maps the file; *size is 0 and nothing is mapped for an empty one. */
static int
map_trace(const char *path, const uint8_t **p, size_t *size, struct hed_why *why)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    void *m = NULL;
    int err = 0;

    if (fd < 0 || fstat(fd, &st) != 0) {
        err = hed_err_from_errno(errno);
        hed_why_set(why, "%s", strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        err = HED_EINVAL;
        hed_why_set(why, "%s", S_ISDIR(st.st_mode) ? "a folder" : "not a plain file");
    } else if (st.st_size > 0) {
        m = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (m == MAP_FAILED) {
            err = hed_err_from_errno(errno);
            hed_why_set(why, "%s", strerror(errno));
        }
    }
    if (!err) {
        *p = m;
        *size = (size_t)st.st_size;
    }
    if (fd >= 0)
        close(fd);
    return err;
}

int
hed_trace_open(const char *path, struct hed_trace **out, struct hed_why *why)
{
    const uint8_t *p;
    size_t size;
    int err = map_trace(path, &p, &size, why);

    if (err)
        return err;
    err = open_over(p, size, true, out, why);
    if (err && size)
        munmap((void *)(uintptr_t)p, size);
    return err;
}

void
hed_trace_close(struct hed_trace *t)
{
    if (!t)
        return;
    if (t->mapped)
        munmap((void *)(uintptr_t)t->file, t->size);
    hed_arena_fini(&t->arena);
    free(t->chunks);
    free(t->threads);
    free(t);
}

/* ---- what is known --------------------------------------------------------------------------- */

const struct hed_trace_state *
hed_trace_state(const struct hed_trace *t)
{
    return &t->state;
}

const char *
hed_trace_info(const struct hed_trace *t, const char *key)
{
    for (const struct info *i = t->info; i; i = i->next) {
        if (strcmp(i->key, key) == 0)
            return i->value;
    }
    return NULL;
}

uint64_t
hed_trace_info_u64(const struct hed_trace *t, const char *key)
{
    const char *value = hed_trace_info(t, key);
    uint64_t n = 0;

    if (value && hed_parse_u64(value, &n) != 0)
        return 0;
    return n;
}

const char *
hed_trace_thread_name(const struct hed_trace *t, uint64_t thread)
{
    const struct thread key = {.id = thread};
    size_t low = 0;
    size_t high = t->thread_count;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (t->threads[mid].id < key.id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->thread_count && t->threads[low].id == thread ? t->threads[low].name : NULL;
}

bool
hed_trace_thread(const struct hed_trace *t, size_t i, uint64_t *thread)
{
    if (i >= t->thread_count)
        return false;
    *thread = t->threads[i].id;
    return true;
}

unsigned
hed_trace_major(const struct hed_trace *t)
{
    return t->major;
}

const struct hed_schema *
hed_trace_schema(const struct hed_trace *t, unsigned api)
{
    return api < t->schema_count ? t->schemas[api] : NULL;
}

/* ---- going through it ------------------------------------------------------------------------ */

struct hed_trace_cursor
hed_trace_cursor_over(const struct hed_trace *t)
{
    return (struct hed_trace_cursor){t, 0, 0};
}

bool
hed_trace_next(struct hed_trace_cursor *c, struct hed_trace_record *r)
{
    const struct hed_trace *t = c->trace;

    while (c->block < t->chunk_count) {
        const struct chunk *k = &t->chunks[c->block];
        const size_t n =
            hed_trace_get_record(t->file + k->at + c->at, k->size - c->at, t->major, k->thread, r);

        if (n) {
            c->at += n;
            return true;
        }
        c->block++;
        c->at = 0;
    }
    return false;
}
