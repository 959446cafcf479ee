/* Chrome trace events. */
#include "cli/trace/chrome_event.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* ---- events ---------------------------------------------------------------------------------- */

void
hed_chrome_begin(struct hed_chrome_out *o, char phase, uint64_t pid, uint64_t tid)
{
    hed_buf_addf(&o->event, "%s\n{\"ph\":\"%c\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64,
                 o->any ? "," : "", phase, pid, tid);
    o->any = true;
}

void
hed_chrome_end(struct hed_chrome_out *o)
{
    hed_buf_addf(&o->event, "}");
}

void
hed_chrome_us(struct hed_chrome_out *o, const char *key, uint64_t ns)
{
    hed_buf_addf(&o->event, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

void
hed_chrome_text(struct hed_chrome_out *o, const char *key, const char *text, size_t n)
{
    hed_buf_addf(&o->event, ",");
    hed_str_field(&o->event, key, text, n);
}

void
hed_chrome_name(struct hed_chrome_out *o, const char *what, uint64_t pid, uint64_t tid,
                const char *name)
{
    hed_chrome_begin(o, 'M', pid, tid);
    hed_buf_addf(&o->event, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    hed_cli_json_text(&o->event, name);
    hed_buf_addf(&o->event, "}");
    hed_chrome_end(o);
}

void
hed_chrome_order(struct hed_chrome_out *o, uint64_t pid, unsigned index)
{
    hed_chrome_begin(o, 'M', pid, 0);
    hed_buf_addf(&o->event, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%u}", index);
    hed_chrome_end(o);
}

void
hed_chrome_arrow(struct hed_chrome_out *o, const char *name, struct hed_chrome_point from,
                 struct hed_chrome_point to)
{
    o->next_flow++;
    for (int side = 0; side < 2; side++) {
        const struct hed_chrome_point p = side ? to : from;

        hed_chrome_begin(o, side ? 'f' : 's', p.pid, p.tid);
        hed_chrome_us(o, "ts", p.time);
        /* "bp": the slice around the point, not the next one. */
        hed_buf_addf(&o->event, ",\"id\":%" PRIu64 ",\"cat\":\"%s\",\"name\":\"%s\"%s",
                     o->next_flow, name, name, side ? ",\"bp\":\"e\"" : "");
        hed_chrome_end(o);
    }
}

bool
hed_chrome_flush(struct hed_chrome_out *o)
{
    const size_t n = o->event.size;

    if (o->event.err || fwrite(hed_buf_cstr(&o->event), 1, n, o->file) != n)
        o->failed = true;
    hed_buf_reset(&o->event);
    return !o->failed;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

struct hed_chrome_track_set {
    uint64_t end[HED_CHROME_TRACKS]; /* ns: when the last slice of the track ends */
    uint64_t tid[HED_CHROME_TRACKS];
    unsigned count;
};

uint64_t
hed_chrome_track(struct hed_chrome_out *o, struct hed_chrome_tracks *l, uint64_t pid, uint64_t key,
                 const char *label, uint64_t start, uint64_t until)
{
    void *array = l->sets;
    bool fresh;
    const size_t i = hed_cli_map_index(&l->map, key, &array, sizeof(*l->sets), &fresh);
    unsigned n = 0;
    char name[128];

    l->sets = array;
    if (i == SIZE_MAX) {
        o->failed = true;
        return 0;
    }

    struct hed_chrome_track_set *set = &l->sets[i];

    while (n < set->count && set->end[n] > start)
        n++;
    if (n == HED_CHROME_TRACKS)
        n--; /* all are taken: better an overlapping slice than none */
    if (n == set->count) {
        set->tid[set->count++] = ++o->next_tid;
        snprintf(name, sizeof(name), n ? "%s #%u" : "%s", label, n + 1);
        hed_chrome_name(o, "thread_name", pid, set->tid[n], name);
    }
    set->end[n] = until;
    return set->tid[n];
}

void
hed_chrome_tracks_fini(struct hed_chrome_tracks *l)
{
    hed_cli_map_fini(&l->map);
    free(l->sets);
    l->sets = NULL;
}
