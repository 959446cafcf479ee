/* Which ranges a thread is in. */
#include "cli/trace/range.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "see/see.h"

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* A new node; 0 without memory. */
static uint32_t
add_node(struct hed_ranges *l, const struct hed_range_node *node, uint64_t key)
{
    const size_t n = l->count ? l->count : 1;
    struct hed_range_node *wide;

    wide = hed_cli_widened(l->nodes, n, sizeof *wide);
    if (!wide)
        return 0;
    l->nodes = wide;
    if (!hed_cli_map_put(&l->children, key, (uint32_t)n))
        return 0;
    l->nodes[n] = *node;
    l->count = n + 1;
    return (uint32_t)n;
}

static bool
begin_range(struct hed_ranges *l, struct hed_range_thread *t, const struct hed_trace_record *r)
{
    const uint32_t depth = t->node ? l->nodes[t->node].depth + 1 : 1;
    const uint64_t key = hed_cli_hash(HASH_BEGIN ^ t->node, r->body, r->body_size);
    uint32_t node = hed_cli_map_get(&l->children, key);

    if (t->over || depth > HED_RANGE_DEPTH_MAX || (!node && l->count >= HED_RANGE_NODES_MAX)) {
        t->over++;
        return true;
    }
    if (!node)
        node = add_node(l,
                        &(struct hed_range_node){.parent = t->node,
                                                 .depth = depth,
                                                 .text = (const char *)r->body,
                                                 .size = r->body_size},
                        key);
    t->node = node ? node : t->node;
    return node != 0;
}

bool
hed_ranges_follow(struct hed_ranges *l, const struct hed_trace_record *r)
{
    if (r->kind != HED_TRACE_RANGE_BEGIN && r->kind != HED_TRACE_RANGE_END)
        return true;

    void *array = l->open;
    bool fresh;
    const size_t i = hed_cli_map_index(&l->threads, r->thread, &array, sizeof *l->open, &fresh);

    l->open = array;
    if (i == SIZE_MAX)
        return false;

    struct hed_range_thread *t = &l->open[i];

    if (r->kind == HED_TRACE_RANGE_BEGIN)
        return begin_range(l, t, r);
    if (t->over)
        t->over--;
    else if (t->node)
        t->node = l->nodes[t->node].parent;
    return true;
}

uint32_t
hed_ranges_now(const struct hed_ranges *l, uint64_t thread)
{
    const uint32_t n = hed_cli_map_get(&l->threads, thread);

    return n ? l->open[n - 1].node : 0;
}

void
hed_ranges_add_path(const struct hed_ranges *l, uint32_t node, const char *after,
                    void (*add)(struct hed_buf *b, const char *text, size_t n), struct hed_buf *b)
{
    uint32_t path[HED_RANGE_DEPTH_MAX];
    size_t n = 0;

    for (; node && n < HED_RANGE_DEPTH_MAX; node = l->nodes[node].parent)
        path[n++] = node;
    while (n-- > 0) {
        add(b, l->nodes[path[n]].text, l->nodes[path[n]].size);
        hed_buf_addf(b, "%s", after);
    }
}

void
hed_ranges_fini(struct hed_ranges *l)
{
    free(l->nodes);
    free(l->open);
    hed_cli_map_fini(&l->children);
    hed_cli_map_fini(&l->threads);
    *l = (struct hed_ranges){.count = 0};
}
