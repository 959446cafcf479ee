/* Turns records into the events of a page: texts become numbers, and events that are there at the
 * same time come into different rows of their track. */
#include "cli/trace/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/trace/page_rows.h"
#include "core/call.h"
#include "see/see.h"

static bool
out_of_memory(struct hed_why *why)
{
    hed_why_set(why, "%s", hed_err_text(HED_ENOMEM));
    return false;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Adds a text of JSON to a list under that hash. Its number; 0, which is the first one's, if the
 * list is full. */
static uint32_t
add_page_text(struct hed_page_texts *l, uint64_t key, const char *json, size_t n, uint32_t most)
{
    const size_t before = l->json.size;

    if (l->count >= most)
        return 0;
    hed_buf_addf(&l->json, "%s\n\"", l->count ? "," : "");
    hed_buf_add(&l->json, json, n);
    hed_buf_addf(&l->json, "\"");
    if (l->json.err || !hed_cli_map_put(&l->map, key, l->count + 1)) {
        l->json.err = 0; /* what did not fit was not added */
        hed_buf_cut(&l->json, before);
        return 0;
    }
    return l->count++;
}

/* The number of the name that stands in p->text as JSON. */
static uint32_t
add_name(struct hed_page *p, uint64_t key, enum hed_page_kind kind)
{
    const uint32_t n =
        add_page_text(&p->names, key, hed_buf_cstr(&p->text), p->text.size, HED_PAGE_NAMES_MAX);

    if (n)
        hed_buf_addf(&p->kinds, ",%d", kind);
    return n;
}

static uint32_t
name_of_text(struct hed_page *p, enum hed_page_kind kind, const char *text, size_t n)
{
    const uint64_t key = hed_cli_hash(UINT64_C(0xcbf29ce484222325) + (uint64_t)kind, text, n);
    const uint32_t known = hed_cli_map_get(&p->names.map, key);

    if (known)
        return known - 1;
    hed_buf_reset(&p->text);
    if (kind == HED_PAGE_KERNEL)
        hed_trace_add_readable(
            &p->text,
            &(struct hed_trace_activity){.kind = HED_TRACE_KERNEL, .name = text, .name_size = n});
    else
        hed_str_escape(&p->text, text, n);
    return add_name(p, key, kind);
}

static uint32_t
note_at(struct hed_page *p, uint64_t key)
{
    return add_page_text(&p->notes, key, hed_buf_cstr(&p->text), p->text.size, HED_PAGE_NOTES_MAX);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The first row of the track that is free at `start`; 0 without memory, UINT32_MAX if there are too
 * many. Otherwise its number + 1. */
static uint32_t
find_free_row(struct hed_page *p, uint32_t track, uint64_t start)
{
    struct hed_page_row *wide;
    uint32_t last = 0;
    unsigned lanes = 0;

    for (uint32_t n = p->tracks[track].rows; n; n = p->rows[n - 1].next) {
        if (p->rows[n - 1].until <= start)
            return n;
        if (++lanes == HED_PAGE_LANES_MAX)
            return UINT32_MAX;
        last = n;
    }
    wide = hed_cli_widened(p->rows, p->row_count, sizeof *wide);
    if (!wide)
        return 0;
    p->rows = wide;
    p->rows[p->row_count++] = (struct hed_page_row){.track = track};
    *(last ? &p->rows[last - 1].next : &p->tracks[track].rows) = (uint32_t)p->row_count;
    return (uint32_t)p->row_count;
}

/* Adds an event; its row is chosen here. False if that is not possible. */
static bool
add_event(struct hed_page *p, uint32_t track, struct hed_page_event e, struct hed_why *why)
{
    const uint32_t row = find_free_row(p, track, e.start);
    struct hed_page_event *wide;

    if (row == UINT32_MAX) {
        p->left_out++;
        return true;
    }
    if (p->count == HED_PAGE_EVENTS_MAX) {
        hed_why_set(why,
                    "a page can have %u events at most; choose a part of the trace with --from "
                    "and --to",
                    HED_PAGE_EVENTS_MAX);
        return false;
    }
    wide = row ? hed_cli_widened(p->events, p->count, sizeof *wide) : NULL;
    if (!wide)
        return out_of_memory(why);
    p->events = wide;
    e.row = row - 1;
    p->events[p->count++] = e;
    p->rows[e.row].until = e.end;
    p->rows[e.row].count++;
    return true;
}

/* The end of something that lasted so long. Only a damaged file has one behind the trace's. */
static uint64_t
end_of(const struct hed_page *p, uint64_t start, uint64_t duration)
{
    const uint64_t last = hed_cli_trace_time(p->trace, hed_trace_state(p->trace)->last);
    const uint64_t most = last > start ? last - start : 0;

    return start + (duration < most ? duration : most);
}

static uint32_t
link_of(const struct hed_page *p, uint64_t correlation)
{
    return correlation ? hed_cli_map_get(&p->links.map, correlation) : 0;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* The number of a new track + 1; 0 without memory. */
static uint32_t
add_track(struct hed_page *p, const struct hed_page_track *track)
{
    struct hed_page_track *wide = hed_cli_widened(p->tracks, p->track_count, sizeof *wide);

    if (!wide)
        return 0;
    p->tracks = wide;
    p->tracks[p->track_count] = *track;
    return (uint32_t)++p->track_count;
}

static uint32_t
track_of_thread(struct hed_page *p, uint64_t thread)
{
    uint32_t n = hed_cli_map_get(&p->threads, thread);

    if (!n) {
        n = add_track(p, &(struct hed_page_track){.thread = thread});
        if (!n || !hed_cli_map_put(&p->threads, thread, n))
            return 0;
    }
    return n;
}

static uint32_t
track_of_stream(struct hed_page *p, const struct hed_trace_activity *a)
{
    bool first = false;
    const uint32_t context = hed_cli_context(&p->contexts, a, &first);
    const uint64_t key = (uint64_t)context << 32 | a->stream;
    uint32_t n = hed_cli_map_get(&p->streams, key);

    if (!context || n)
        return context ? n : 0;
    n = add_track(p, &(struct hed_page_track){.gpu = true,
                                              .device = a->device,
                                              .thread = a->stream,
                                              .context = a->context,
                                              .only_context = first});
    return n && hed_cli_map_put(&p->streams, key, n) ? n : 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static uint32_t
name_of_activity(struct hed_page *p, const struct hed_trace_activity *a)
{
    char name[64];
    int n;

    if (a->kind == HED_TRACE_KERNEL && a->name_size)
        return name_of_text(p, HED_PAGE_KERNEL, a->name, a->name_size);
    if (a->kind == HED_TRACE_COPY) {
        n = snprintf(name, sizeof name, "copy %s to %s", hed_trace_memory_name(a->from),
                     hed_trace_memory_name(a->to));
        return name_of_text(p, HED_PAGE_COPY, name, (size_t)n);
    }
    if (a->kind == HED_TRACE_FILL) {
        n = snprintf(name, sizeof name, "fill of %s", hed_trace_memory_name(a->to));
        return name_of_text(p, HED_PAGE_FILL, name, (size_t)n);
    }
    if (a->name_size)
        return name_of_text(p, HED_PAGE_OTHER, a->name, a->name_size);
    n = snprintf(name, sizeof name, "%s", hed_trace_activity_name(a->kind));
    return name_of_text(p, HED_PAGE_OTHER, name, (size_t)n);
}

static uint32_t
note_of_activity(struct hed_page *p, const struct hed_trace_activity *a)
{
    const uint32_t shape[] = {a->grid[0],       a->grid[1],        a->grid[2],
                              a->block[0],      a->block[1],       a->block[2],
                              a->static_shared, a->dynamic_shared, a->registers};
    const bool kernel = a->kind == HED_TRACE_KERNEL;
    const uint64_t key =
        kernel ? hed_cli_hash(1, shape, sizeof shape) : hed_cli_hash(2, &a->bytes, sizeof a->bytes);
    const uint32_t known = hed_cli_map_get(&p->notes.map, key);

    if (known)
        return known - 1;
    hed_buf_reset(&p->text);
    if (kernel) {
        hed_buf_addf(&p->text, "grid %ux%ux%u block %ux%ux%u", shape[0], shape[1], shape[2],
                     shape[3], shape[4], shape[5]);
        if (shape[6] || shape[7])
            hed_buf_addf(&p->text, " shared %u+%u", shape[6], shape[7]);
        if (shape[8])
            hed_buf_addf(&p->text, " registers %u", shape[8]);
    } else if (a->kind == HED_TRACE_COPY || a->kind == HED_TRACE_FILL)
        hed_buf_addf(&p->text, "%" PRIu64 " bytes", a->bytes);
    else
        return 0;
    return note_at(p, key);
}

static bool
put_activity(struct hed_page *p, const struct hed_trace_record *r, struct hed_why *why)
{
    struct hed_trace_activity a;

    if (!hed_trace_get_activity(r, &a))
        return true;

    const uint32_t track = track_of_stream(p, &a);
    const uint64_t start = hed_cli_trace_time(p->trace, a.start);

    if (!track)
        return out_of_memory(why);
    return add_event(p, track - 1,
                     (struct hed_page_event){.start = start,
                                             .end = end_of(p, start, a.end - a.start),
                                             .name = name_of_activity(p, &a),
                                             .note = note_of_activity(p, &a),
                                             .link = link_of(p, a.correlation)},
                     why);
}

static enum hed_page_kind
kind_of_call(const struct hed_trace_record *r, const char *name)
{
    const struct hed_call_info *info = hed_cli_trace_info(r, name);

    switch (info ? info->does : HED_DOES_NOTHING) {
    case HED_DOES_LAUNCH:
    case HED_DOES_COPY:
    case HED_DOES_FILL:
    case HED_DOES_MOVE:
        return HED_PAGE_LAUNCH;
    case HED_DOES_WAIT:
        return HED_PAGE_WAIT;
    default:
        return HED_PAGE_CALL;
    }
}

static uint32_t
name_of_call(struct hed_page *p, const struct hed_trace_record *r)
{
    struct hed_trace_facts facts;

    hed_trace_facts(p->trace, r, &facts);

    const uint64_t key =
        (uint64_t)r->api << 17 | (uint64_t)r->call << 1 | (facts.suffix && facts.suffix[0]);
    const uint32_t known = hed_cli_map_get(&p->calls, key);

    if (known)
        return known - 1;
    hed_buf_reset(&p->text);
    hed_trace_print_name(p->trace, r, &p->text);

    const uint32_t n = add_name(p, hed_cli_hash(3, &key, sizeof key), kind_of_call(r, facts.name));

    (void)hed_cli_map_put(&p->calls, key, n + 1); /* or it is looked up again */
    return n;
}

/* "!" marks an error. */
static uint32_t
note_of_call(struct hed_page *p, const struct hed_trace_record *r)
{
    const bool error = hed_trace_is_error(p->trace, r);
    const uint32_t facts[] = {error ? (uint32_t)r->result : 0, r->calls, error, r->api};
    const uint64_t key = hed_cli_hash(4, facts, sizeof facts);
    const uint32_t known = hed_cli_map_get(&p->notes.map, key);

    if (known || (!error && r->calls <= 1))
        return known ? known - 1 : 0;
    hed_buf_reset(&p->text);
    if (error) {
        hed_buf_addf(&p->text, "!");
        hed_trace_print_result(p->trace, r, &p->text);
    }
    if (r->calls > 1)
        hed_buf_addf(&p->text, "%s%" PRIu32 " times", error ? ", " : "", r->calls);
    return note_at(p, key);
}

static bool
begin_page_range(struct hed_page *p, uint32_t track, struct hed_page_event e, struct hed_why *why)
{
    struct hed_page_track *t = &p->tracks[track];
    uint32_t *wide = hed_cli_widened(t->open, t->open_count, sizeof *wide);
    const size_t n = p->count;

    if (!wide)
        return out_of_memory(why);
    t->open = wide;
    e.end = UINT64_MAX; /* until it ends, everything else is in it */
    if (!add_event(p, track, e, why))
        return false;
    /* Its end must be found even if it was left out. */
    t->open[t->open_count++] = p->count > n ? (uint32_t)n : UINT32_MAX;
    return true;
}

static void
end_page_range(struct hed_page *p, uint32_t track, uint64_t time)
{
    struct hed_page_track *t = &p->tracks[track];
    uint32_t n;

    if (!t->open_count)
        return; /* its beginning was dropped or lost */
    n = t->open[--t->open_count];
    if (n == UINT32_MAX)
        return;
    p->events[n].end = time;
    p->rows[p->events[n].row].until = time;
}

bool
hed_page_put(struct hed_page *p, const struct hed_trace_record *r, struct hed_why *why)
{
    const uint64_t start = hed_cli_trace_time(p->trace, r->start);
    struct hed_page_event e = {.start = start, .end = start};
    uint32_t track;

    if (r->kind == HED_TRACE_ACTIVITY)
        return put_activity(p, r, why);
    track = track_of_thread(p, r->thread);
    if (!track)
        return out_of_memory(why);
    switch (r->kind) {
    case HED_TRACE_CALL:
        e.end = end_of(p, start, r->flags & HED_TRACE_UNTIMED ? 0 : r->duration);
        e.name = name_of_call(p, r);
        e.note = note_of_call(p, r);
        e.link = link_of(p, r->correlation);
        return add_event(p, track - 1, e, why);
    case HED_TRACE_RANGE_BEGIN:
        e.name = name_of_text(p, HED_PAGE_RANGE, (const char *)r->body, r->body_size);
        return begin_page_range(p, track - 1, e, why);
    case HED_TRACE_RANGE_END:
        end_page_range(p, track - 1, start);
        return true;
    case HED_TRACE_MARK:
    case HED_TRACE_CLIENT:
        e.name = name_of_text(p, HED_PAGE_MARK, (const char *)r->body, r->body_size);
        return add_event(p, track - 1, e, why);
    case HED_TRACE_DROPPED:
        e.name = name_of_text(p, HED_PAGE_MARK, "records dropped", strlen("records dropped"));
        return add_event(p, track - 1, e, why);
    default:
        return true;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct hed_page *
hed_page_create(const struct hed_trace *t)
{
    struct hed_page *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->trace = t;
    hed_buf_init(&p->names.json, HED_PAGE_TEXT_MAX);
    hed_buf_init(&p->notes.json, HED_PAGE_TEXT_MAX);
    hed_buf_init(&p->kinds, HED_PAGE_TEXT_MAX);
    hed_buf_init(&p->text, HED_CLI_LINE_MAX);
    /* Number 0 of each list, for what finds no room. */
    (void)add_page_text(&p->names, 0, "(other)", strlen("(other)"), 1);
    (void)add_page_text(&p->notes, 0, "", 0, 1);
    hed_buf_addf(&p->kinds, "%d", HED_PAGE_OTHER);
    if (!hed_cli_links_make(&p->links, t)) {
        hed_page_free(p);
        return NULL;
    }
    return p;
}

void
hed_page_free(struct hed_page *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->track_count; i++)
        free(p->tracks[i].open);
    hed_cli_links_fini(&p->links);
    hed_cli_map_fini(&p->threads);
    hed_cli_contexts_fini(&p->contexts);
    hed_cli_map_fini(&p->streams);
    hed_cli_map_fini(&p->calls);
    hed_cli_map_fini(&p->names.map);
    hed_cli_map_fini(&p->notes.map);
    hed_buf_fini(&p->names.json);
    hed_buf_fini(&p->notes.json);
    hed_buf_fini(&p->kinds);
    hed_buf_fini(&p->text);
    free(p->events);
    free(p->rows);
    free(p->tracks);
    free(p);
}
