/* Connects calls with the GPU activity that they caused.
 *
 * Activity is read first, so that memory grows with the activity and not with the calls.
 */
#include "cli/trace/link.h"

#include <stdlib.h>

#include "base/number.h"
#include "see/see.h"

/* Keeps the name of the first kernel, and counts the others. */
static void
add_kernel(struct hed_cli_caller *c, const struct hed_trace_activity *a)
{
    if (a->kind != HED_TRACE_KERNEL)
        return;
    if (!c->kernel) {
        c->kernel = a->name;
        c->kernel_size = (uint32_t)a->name_size;
    }
    c->kernels++;
    c->kernel_time = hed_add_capped(c->kernel_time, a->end - a->start);
}

static bool
add_activity(struct hed_cli_links *l, const struct hed_trace_activity *a)
{
    const uint32_t known = hed_cli_map_get(&l->map, a->correlation);
    const size_t n = l->count;
    struct hed_cli_caller *wide;

    if (known) {
        struct hed_cli_caller *c = &l->callers[known - 1];

        c->first = a->start < c->first ? a->start : c->first;
        add_kernel(c, a);
        return true;
    }
    if (n == UINT32_MAX - 1)
        return false;
    wide = hed_cli_widened(l->callers, n, sizeof *wide);
    if (!wide)
        return false;
    l->callers = wide;
    if (!hed_cli_map_put(&l->map, a->correlation, (uint32_t)n + 1))
        return false;
    l->callers[n] = (struct hed_cli_caller){.correlation = a->correlation, .first = a->start};
    add_kernel(&l->callers[n], a);
    l->count++;
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
    c->range = hed_ranges_now(&l->ranges, r->thread);
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
        else if (!hed_ranges_follow(&l->ranges, &r))
            return false;
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
    hed_ranges_fini(&l->ranges);
    free(l->callers);
    *l = (struct hed_cli_links){.count = 0};
}
