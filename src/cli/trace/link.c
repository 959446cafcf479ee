/* Connects calls with the GPU activity that they caused.
 *
 * Activity is read first, so that memory grows with the activity and not with the calls.
 */
#include "cli/trace/link.h"

#include <stdlib.h>

#include "see/see.h"

static bool
add_activity(struct hed_cli_links *l, const struct hed_trace_activity *a)
{
    const uint32_t known = hed_cli_map_get(&l->map, a->correlation);
    const size_t n = l->count;

    if (known) {
        struct hed_cli_caller *c = &l->callers[known - 1];

        c->first = a->start < c->first ? a->start : c->first;
        return true;
    }
    if (n == UINT32_MAX - 1)
        return false;
    if ((n & (n - 1)) == 0) {
        struct hed_cli_caller *wide = reallocarray(l->callers, n ? n * 2 : 1, sizeof(*l->callers));

        if (!wide)
            return false;
        l->callers = wide;
    }
    if (!hed_cli_map_put(&l->map, a->correlation, (uint32_t)n + 1))
        return false;
    l->callers[l->count++] =
        (struct hed_cli_caller){.correlation = a->correlation, .first = a->start};
    return true;
}

static void
add_caller(struct hed_cli_links *l, const struct hed_trace_record *r)
{
    const uint32_t known = hed_cli_map_get(&l->map, r->correlation);

    /* If two calls have one id, which should not happen, the first counts. */
    if (!known || l->callers[known - 1].found)
        return;

    struct hed_cli_caller *c = &l->callers[known - 1];

    c->found = true;
    c->api = r->api;
    c->call = r->call;
    c->thread = r->thread;
    c->start = r->start;
    c->duration = r->duration;
}

bool
hed_cli_links_make(struct hed_cli_links *l, const struct hed_trace *t)
{
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_activity a;
    struct hed_trace_record r;

    *l = (struct hed_cli_links){.count = 0};
    if (!hed_trace_state(t)->activities)
        return true;
    while (hed_trace_next(&c, &r)) {
        if (hed_trace_get_activity(&r, &a) && a.correlation && !add_activity(l, &a))
            return false;
    }
    c = hed_trace_cursor_over(t);
    while (hed_trace_next(&c, &r)) {
        if (r.kind == HED_TRACE_CALL && r.correlation)
            add_caller(l, &r);
    }
    return true;
}

const struct hed_cli_caller *
hed_cli_links_find(const struct hed_cli_links *l, uint64_t correlation)
{
    const uint32_t known = correlation ? hed_cli_map_get(&l->map, correlation) : 0;

    return known && l->callers[known - 1].found ? &l->callers[known - 1] : NULL;
}

void
hed_cli_links_fini(struct hed_cli_links *l)
{
    hed_cli_map_fini(&l->map);
    free(l->callers);
    *l = (struct hed_cli_links){.count = 0};
}
