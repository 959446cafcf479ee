/* Gaps, and the calls that lie in them.
 *
 * 1. The gaps of a GPU are disjoint. Those that one thread explains are a row, in order of time.
 * 2. The records of a thread are in order, too, so each call continues where the one before it has
 *    stopped in each row. What a broken file says a second time about the same moment is left out:
 *    the work grows with the calls and gaps, not with their product.
 */
#include "cli/trace/idle.h"

#include <stdlib.h>

#include "cli/trace/link.h"
#include "cli/trace/table.h"
#include "see/see.h"

struct gap {
    uint32_t device;
    uint64_t thread;
    uint64_t start;   /* ns */
    uint64_t end;     /* ns: at the latest when the call that ends it returned */
    uint64_t in_call; /* ns of it that calls explain so far */
};

struct row {
    uint64_t thread;
    size_t first; /* gap */
    size_t count;
    size_t at;     /* the first gap that later calls can reach */
    uint64_t told; /* ns: what is before it has been counted */
    uint32_t next; /* another row of that thread + 1 */
};

struct idle {
    struct hed_table *table;
    const struct hed_trace *trace;
    struct gap *gaps; /* owned */
    size_t count;
    struct row *rows; /* owned */
    size_t row_count;
    struct hed_cli_map threads; /* thread -> its first row + 1 */
    struct hed_cli_map calls;   /* API and number -> line of the table */
};

static bool
count_part(struct hed_table *table, const char *name, uint64_t ns)
{
    const uint32_t line = hed_table_line(table, name, NULL);

    return line && hed_call_stats_add(&table->stats, line - 1, ns, false);
}

/* ---- the gaps -------------------------------------------------------------------------------- */

static bool
push_gap(struct idle *l, const struct gap *gap)
{
    struct gap *wide = hed_cli_widened(l->gaps, l->count, sizeof *wide);

    if (!wide)
        return false;
    l->gaps = wide;
    l->gaps[l->count++] = *gap;
    return true;
}

/* A gap before the work x. Its end belongs to the driver, from the moment when the call that has
 * asked for the work returned. */
static bool
add_gap(struct idle *l, const struct hed_cli_links *links, uint64_t start,
        const struct hed_gpu_span *x)
{
    const struct hed_cli_caller *c = hed_cli_links_find(links, x->correlation);
    uint64_t asked;

    if (!c)
        return count_part(l->table, HED_IDLE_UNKNOWN, x->start - start);
    if (__builtin_add_overflow(c->start, c->duration, &asked) || asked > x->start)
        asked = x->start;
    if (asked < start)
        asked = start;
    if (x->start > asked && !count_part(l->table, HED_IDLE_PENDING, x->start - asked))
        return false;
    return asked == start ||
           push_gap(l, &(struct gap){
                           .device = x->device, .thread = c->thread, .start = start, .end = asked});
}

static bool
find_gaps(struct idle *l, const struct hed_cli_links *links, const struct hed_gpu_span *spans,
          size_t count)
{
    unsigned devices = 0;
    uint64_t until = 0;

    for (size_t i = 0; i < count; i++) {
        const struct hed_gpu_span *x = &spans[i];

        if (i == 0 || x->device != spans[i - 1].device) {
            if (++devices > HED_IDLE_DEVICES_MAX)
                break;
            until = x->end;
            continue;
        }
        if (x->start > until && !add_gap(l, links, until, x))
            return false;
        until = x->end > until ? x->end : until;
    }
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int
by_row_and_start(const void *a, const void *b)
{
    const struct gap *x = a;
    const struct gap *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

static bool
make_rows(struct idle *l)
{
    if (!l->count)
        return true;
    qsort(l->gaps, l->count, sizeof *l->gaps, by_row_and_start);
    l->rows = calloc(l->count, sizeof *l->rows);
    if (!l->rows)
        return false;
    for (size_t i = 0; i < l->count; i++) {
        const struct gap *g = &l->gaps[i];

        if (i && g->thread == g[-1].thread && g->device == g[-1].device) {
            l->rows[l->row_count - 1].count++;
            continue;
        }

        const uint32_t known = hed_cli_map_get(&l->threads, g->thread);
        struct row *row = &l->rows[l->row_count++];

        *row = (struct row){.thread = g->thread, .first = i, .count = 1};
        if (known) {
            row->next = l->rows[known - 1].next;
            l->rows[known - 1].next = (uint32_t)l->row_count;
        } else if (!hed_cli_map_put(&l->threads, g->thread, (uint32_t)l->row_count))
            return false;
    }
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The line of a call + 1; 0 without memory. */
static uint32_t
line_of(struct idle *l, const struct hed_trace_record *r)
{
    const uint64_t key = (uint64_t)r->api << 16 | r->call;
    uint32_t line = hed_cli_map_get(&l->calls, key);

    if (!line) {
        const struct hed_schema_call *call =
            hed_schema_call(hed_trace_schema(l->trace, r->api), r->call);

        line = hed_table_line(l->table, call ? call->name : "(no schema)", NULL);
        if (!line || !hed_cli_map_put(&l->calls, key, line))
            return 0;
    }
    return line;
}

/* Counts what the call has of the row's gaps. */
static bool
tell_call(struct idle *l, struct row *row, const struct hed_trace_record *r, uint64_t end)
{
    struct gap *gaps = l->gaps + row->first;
    const uint64_t start = r->start > row->told ? r->start : row->told;

    if (end <= start)
        return true;
    row->told = end;
    while (row->at < row->count && gaps[row->at].end <= start)
        row->at++;
    for (size_t i = row->at; i < row->count && gaps[i].start < end; i++) {
        const uint64_t from = gaps[i].start > start ? gaps[i].start : start;
        const uint64_t to = gaps[i].end < end ? gaps[i].end : end;

        if (to <= from)
            continue;

        const uint32_t line = line_of(l, r);

        if (!line || !hed_call_stats_add(&l->table->stats, line - 1, to - from, false))
            return false;
        gaps[i].in_call += to - from;
    }
    return true;
}

static bool
tell_calls(struct idle *l)
{
    struct hed_trace_cursor c = hed_trace_cursor_over(l->trace);
    struct hed_trace_record r;

    while (hed_trace_next(&c, &r)) {
        uint64_t end;

        if (r.kind != HED_TRACE_CALL || (r.flags & HED_TRACE_UNTIMED) ||
            __builtin_add_overflow(r.start, r.duration, &end))
            continue;
        for (uint32_t n = hed_cli_map_get(&l->threads, r.thread); n; n = l->rows[n - 1].next) {
            if (!tell_call(l, &l->rows[n - 1], &r, end))
                return false;
        }
    }
    return true;
}

/* What no call explains is the program's own time. */
static bool
tell_rest(struct idle *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct gap *g = &l->gaps[i];
        const uint64_t rest = g->end - g->start - g->in_call;

        if (rest && !count_part(l->table, HED_IDLE_PROGRAM, rest))
            return false;
    }
    return true;
}

bool
hed_idle_add(struct hed_table *idle, const struct hed_trace *t, const struct hed_cli_links *links,
             const struct hed_gpu_span *spans, size_t count)
{
    struct idle l = {.table = idle, .trace = t};
    const bool good =
        find_gaps(&l, links, spans, count) && make_rows(&l) && tell_calls(&l) && tell_rest(&l);

    free(l.gaps);
    free(l.rows);
    hed_cli_map_fini(&l.threads);
    hed_cli_map_fini(&l.calls);
    return good;
}
