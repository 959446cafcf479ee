/* heddle top: which rows are shown, in which order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/top/top.h"

static const char *const sort_names[HED_TOP_SORTS] = {
    [HED_TOP_BY_BUSY] = "busy",       [HED_TOP_BY_WAIT] = "wait",
    [HED_TOP_BY_MEMORY] = "memory",   [HED_TOP_BY_LAUNCHES] = "launches",
    [HED_TOP_BY_PID] = "pid",         [HED_TOP_BY_USER] = "user",
    [HED_TOP_BY_PROGRAM] = "program", [HED_TOP_BY_STATE] = "state",
    [HED_TOP_BY_DEVICE] = "device",
};

const char *
hed_top_sort_name(enum hed_top_sort sort)
{
    return sort_names[sort];
}

bool
hed_top_sort_find(const char *name, enum hed_top_sort *out)
{
    for (int i = 0; i < HED_TOP_SORTS; i++) {
        if (strcmp(sort_names[i], name) == 0) {
            *out = (enum hed_top_sort)i;
            return true;
        }
    }
    return false;
}

/* ---- the filter ------------------------------------------------------------------------------ */

static bool
row_passes(const struct hed_live_row *r, const char *filter)
{
    const char *const texts[] = {r->user,  r->name, r->command,
                                 r->group, r->from, hed_live_state_name(r->state)};
    char pid[16];
    bool passes = !*filter;

    for (size_t i = 0; !passes && i < sizeof texts / sizeof *texts; i++)
        passes = strcasestr(texts[i], filter);
    (void)snprintf(pid, sizeof pid, "%d", r->pid);
    return passes || (r->pid > 0 && strcmp(pid, filter) == 0);
}

/* ---- sorting --------------------------------------------------------------------------------- */

struct order {
    const struct hed_live_view *view;
    const struct hed_top_choice *choice;
};

static int
falling(double a, double b)
{
    return (a < b) - (a > b);
}

static int
compare_rows(const struct hed_live_row *a, const struct hed_live_row *b, enum hed_top_sort sort)
{
    switch (sort) {
    case HED_TOP_BY_BUSY:
        return falling(a->busy, b->busy);
    case HED_TOP_BY_WAIT:
        return falling(a->wait, b->wait);
    case HED_TOP_BY_MEMORY:
        return falling((double)a->memory, (double)b->memory);
    case HED_TOP_BY_LAUNCHES:
        return falling(a->rate, b->rate);
    case HED_TOP_BY_USER:
        return strcmp(a->user, b->user);
    case HED_TOP_BY_PROGRAM:
        return strcmp(a->name, b->name);
    case HED_TOP_BY_STATE:
        return (a->state < b->state) - (a->state > b->state);
    case HED_TOP_BY_DEVICE:
        return a->is_client != b->is_client ? a->is_client - b->is_client
                                            : (a->where > b->where) - (a->where < b->where);
    default:
        return 0;
    }
}

/* Programs of a user's group are together in the tree. */
static int
compare_places(const struct hed_live_row *a, const struct hed_live_row *b)
{
    const int order = strcmp(a->user, b->user);

    return order ? order : strcmp(a->group, b->group);
}

static int
by_choice(const void *x, const void *y, void *arg)
{
    const struct order *o = arg;
    const struct hed_live_row *a = &o->view->rows[((const struct hed_top_item *)x)->row];
    const struct hed_live_row *b = &o->view->rows[((const struct hed_top_item *)y)->row];
    int order = o->choice->tree ? compare_places(a, b) : 0;

    if (order)
        return order;
    order = compare_rows(a, b, o->choice->sort);
    if (!order)
        order = (a->pid > b->pid) - (a->pid < b->pid);
    if (!order)
        order = (a->key > b->key) - (a->key < b->key);
    return o->choice->reverse ? -order : order;
}

/* ---- the list -------------------------------------------------------------------------------- */

static bool
reserve_items(struct hed_top_list *l, size_t count)
{
    struct hed_top_item *more;

    if (count <= l->room)
        return true;
    more = realloc(l->items, count * sizeof *more);
    if (!more)
        return false;
    l->items = more;
    l->room = count;
    return true;
}

static void
add_part(double *sum, double part)
{
    if (part >= 0)
        *sum = (*sum > 0 ? *sum : 0) + part;
}

/* Puts a sum before the rows of each user and group, which are behind each other. `rows` are
 * `count` items at the end of the list's room. */
static void
add_sums(const struct hed_live_view *v, struct hed_top_list *l, const struct hed_top_item *rows,
         size_t count)
{
    struct hed_top_item *sum = NULL;

    l->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hed_top_item item = rows[i];
        const struct hed_live_row *r = &v->rows[item.row];

        if (!sum || compare_places(&v->rows[sum->row], r) != 0) {
            sum = &l->items[l->count++];
            *sum = (struct hed_top_item){
                .sum = true, .row = item.row, .busy = -1, .wait = -1, .rate = -1};
        }
        sum->count++;
        sum->memory += r->memory_known ? r->memory : 0;
        add_part(&sum->busy, r->busy);
        add_part(&sum->rate, r->rate);
        l->items[l->count++] = item;
    }
}

int
hed_top_arrange(const struct hed_live_view *v, const struct hed_top_choice *c,
                struct hed_top_list *out)
{
    struct order o = {v, c};
    struct hed_top_item *rows;
    size_t count = 0;

    out->count = 0;
    /* A sum for each row at most, and behind them the rows, which move forward. */
    if (!reserve_items(out, 3 * v->row_count + 1))
        return HED_ENOMEM;
    rows = c->tree ? out->items + 2 * v->row_count : out->items;
    for (size_t i = 0; i < v->row_count; i++)
        if (row_passes(&v->rows[i], c->filter))
            rows[count++] = (struct hed_top_item){.row = i};
    if (count)
        qsort_r(rows, count, sizeof *rows, by_choice, &o);
    if (c->tree)
        add_sums(v, out, rows, count);
    else
        out->count = count;
    return 0;
}

void
hed_top_list_free(struct hed_top_list *l)
{
    free(l->items);
    *l = (struct hed_top_list){0};
}
