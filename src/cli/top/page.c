/* heddle top: a view as lines of text.
 *
 *     title
 *     a line for each GPU and server, as far as there is room
 *     heading
 *     rows
 *     note: the keys, or what happened      (not on a small terminal)
 *
 * Columns go when there is no room for them, the least important first; the name gets what is left.
 * Everything is in letters that a terminal prints in one column each, whatever programs call
 * themselves.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/top/top.h"

#define SMALL 8      /* lines; a smaller terminal has rows instead of notes and devices */
#define TINY 4       /* and one that is smaller than that has nothing else */
#define NAME_WISH 12 /* columns of the name, as long as something less important can go */
#define NAME_LEAST 5
#define NAME_MOST 48
#define BAR 10
#define LINES_MAX 20000

enum column { PID, USER, NAME, WHERE, PRIO, STATE, BUSY, WAIT, P99, MEMORY, RATE, COLUMNS };

/* In the order in which they are shown. */
static const struct {
    const char *heading;
    size_t width; /* 0: what is left */
    bool left;
} columns[COLUMNS] = {
    [PID] = {"PID", 7, false},      [USER] = {"USER", 8, true},
    [NAME] = {"PROGRAM", 0, true},  [WHERE] = {"GPU", 4, true},
    [PRIO] = {"PRIO", 6, true},     [STATE] = {"STATE", 7, true},
    [BUSY] = {"BUSY%", 5, false},   [WAIT] = {"WAIT%", 5, false},
    [P99] = {"p99 WAIT", 8, false}, [MEMORY] = {"MEM/LIMIT", 13, false},
    [RATE] = {"CALLS/s", 7, false},
};

/* The most important first. */
static const enum column importance[COLUMNS] = {NAME, BUSY, STATE, PID,  MEMORY, WAIT,
                                                USER, RATE, WHERE, PRIO, P99};

/* Which columns there are, and how wide the name is. */
struct layout {
    bool has[COLUMNS];
    size_t name;
};

static struct layout
lay_columns_out(size_t width)
{
    size_t count = COLUMNS;
    struct layout l = {.name = 0};

    for (;; count--) {
        size_t taken = count - 1; /* blanks between columns */

        for (size_t i = 0; i < count; i++)
            taken += columns[importance[i]].width;
        l.name = width > taken ? width - taken : 0;
        if (count == 1 || l.name >= (count > 3 ? NAME_WISH : NAME_LEAST))
            break;
    }
    for (size_t i = 0; i < count; i++)
        l.has[importance[i]] = true;
    l.name = l.name < NAME_MOST ? l.name : NAME_MOST;
    return l;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A new line. Without memory, one that is never shown. */
static struct hed_top_line *
add_line(struct hed_top_page *p, enum hed_top_kind kind)
{
    static struct hed_top_line nowhere;
    struct hed_top_line *more;

    if (p->count == p->room) {
        const size_t room = p->room ? 2 * p->room : 64;

        more = room <= 2 * LINES_MAX ? realloc(p->lines, room * sizeof *more) : NULL;
        if (!more) {
            p->err = HED_ENOMEM;
            return &nowhere;
        }
        p->lines = more;
        p->room = room;
    }
    more = &p->lines[p->count++];
    more->kind = kind;
    more->chosen = more->quiet = false;
    more->text[0] = '\0';
    return more;
}

/* Appends text to a line, as far as it fits in `width` columns. */
__attribute__((format(printf, 3, 4))) static void
line_put(struct hed_top_line *l, size_t width, const char *fmt, ...)
{
    const size_t n = strlen(l->text);
    const size_t most = width < HED_TOP_WIDTH ? width : HED_TOP_WIDTH;
    va_list args;

    if (n >= most)
        return;
    va_start(args, fmt);
    (void)vsnprintf(l->text + n, most - n + 1, fmt, args);
    va_end(args);
}

static void
put_cell(struct hed_top_line *l, const struct layout *lay, enum column c, const char *text,
         size_t width)
{
    const size_t n = columns[c].width ? columns[c].width : lay->name;

    if (lay->has[c])
        line_put(l, width, columns[c].left ? "%s%-*.*s" : "%s%*.*s", l->text[0] ? " " : "", (int)n,
                 (int)n, text);
}

/* A line that begins with a cell of blanks has text, so a blank follows. */
static void
put_heading(struct hed_top_page *p, const struct layout *lay, const struct hed_top_choice *c,
            size_t width)
{
    struct hed_top_line *l = add_line(p, HED_TOP_HEADING);

    for (int i = 0; i < COLUMNS; i++)
        put_cell(l, lay, (enum column)i, i == NAME && c->command ? "COMMAND" : columns[i].heading,
                 width);
}

static void
memory_text(const struct hed_live_row *r, char out[2 * HED_TOP_CELL])
{
    char used[HED_TOP_CELL] = "-";
    char limit[HED_TOP_CELL] = "-";

    if (r->memory_known)
        hed_top_size(r->memory, used);
    if (r->memory_limit)
        hed_top_size(r->memory_limit, limit);
    (void)snprintf(out, (size_t)2 * HED_TOP_CELL, "%s/%s", used, limit);
}

static void
name_text(const struct hed_live_row *r, const struct hed_top_choice *c, char *out, size_t size)
{
    const char *shown = c->command && r->command[0] ? r->command : r->name;
    const size_t indent = c->tree ? 2 : 0;

    (void)snprintf(out, size, "%*s", (int)indent, "");
    (void)hed_sched_plain(shown, out + indent, size - indent);
}

static void
where_text(const struct hed_live_row *r, char out[HED_TOP_CELL])
{
    (void)snprintf(out, HED_TOP_CELL, r->is_client ? "s%zu" : "%zu", r->where);
}

static void
put_row(struct hed_top_line *l, const struct layout *lay, const struct hed_live_row *r,
        const struct hed_top_choice *c, size_t width)
{
    char name[HED_LIVE_COMMAND + 2];
    char text[2 * HED_TOP_CELL];
    char user[HED_LIVE_TEXT];

    l->quiet = r->state == HED_LIVE_IDLE;
    (void)snprintf(text, sizeof text, "%d", r->pid);
    put_cell(l, lay, PID, r->pid > 0 ? text : "-", width);
    (void)hed_sched_plain(r->user, user, sizeof user);
    hed_top_cut(user, columns[USER].width);
    put_cell(l, lay, USER, user[0] ? user : "-", width);
    name_text(r, c, name, sizeof name);
    hed_top_cut(name, lay->name);
    put_cell(l, lay, NAME, name, width);
    where_text(r, text);
    put_cell(l, lay, WHERE, text, width);
    put_cell(l, lay, PRIO, r->is_client ? "-" : hed_sched_priority_name(r->priority), width);
    put_cell(l, lay, STATE, hed_live_state_name(r->state), width);
    hed_top_percent(r->busy, text);
    put_cell(l, lay, BUSY, text, width);
    hed_top_percent(r->wait, text);
    put_cell(l, lay, WAIT, text, width);
    hed_top_duration(r->p99, text);
    put_cell(l, lay, P99, text, width);
    memory_text(r, text);
    put_cell(l, lay, MEMORY, text, width);
    hed_top_count(r->rate, text);
    put_cell(l, lay, RATE, text, width);
}

static void
put_sum(struct hed_top_line *l, const struct layout *lay, const struct hed_live_view *v,
        const struct hed_top_item *item, size_t width)
{
    const struct hed_live_row *r = &v->rows[item->row];
    char name[2 * HED_LIVE_TEXT + 32];
    char plain[2 * HED_LIVE_TEXT + 32];
    char text[2 * HED_TOP_CELL];

    (void)snprintf(name, sizeof name, "%s%s%s: %zu", r->user[0] ? r->user : "-",
                   r->group[0] ? "/" : "", r->group, item->count);
    (void)hed_sched_plain(name, plain, sizeof plain);
    hed_top_cut(plain, lay->name);
    for (int i = 0; i < COLUMNS; i++) {
        text[0] = '\0';
        if (i == BUSY)
            hed_top_percent(item->busy, text);
        else if (i == RATE)
            hed_top_count(item->rate, text);
        else if (i == MEMORY)
            hed_top_size(item->memory, text);
        put_cell(l, lay, (enum column)i, i == NAME ? plain : text, width);
    }
}

/* ---- above the table ------------------------------------------------------------------------- */

static void
put_title(const struct hed_top_state *s, struct hed_top_page *p)
{
    const struct hed_live_view *v = s->view;
    const struct hed_top_choice *c = s->choice;
    struct hed_top_line *l = add_line(p, HED_TOP_TITLE);
    char filter[HED_TOP_FILTER];

    line_put(l, s->columns, "heddle top  %zu GPU%s  %zu program%s", v->gpu_count,
             v->gpu_count == 1 ? "" : "s", v->row_count, v->row_count == 1 ? "" : "s");
    if (v->server_count)
        line_put(l, s->columns, "  %zu server%s", v->server_count, v->server_count == 1 ? "" : "s");
    line_put(l, s->columns, "  by %s%s", hed_top_sort_name(c->sort),
             c->reverse ? ", reversed" : "");
    (void)hed_sched_plain(c->filter, filter, sizeof filter);
    if (filter[0])
        line_put(l, s->columns, "  only \"%s\"", filter);
    if (v->problem.text[0]) {
        char plain[sizeof v->problem.text];

        (void)hed_sched_plain(v->problem.text, plain, sizeof plain);
        line_put(add_line(p, HED_TOP_NOTE), s->columns, "%s", plain);
    }
}

static void
put_gpu(const struct hed_top_state *s, size_t index, struct hed_top_page *p)
{
    const struct hed_live_gpu *g = &s->view->gpus[index];
    struct hed_top_line *l = add_line(p, HED_TOP_DEVICE);
    char busy[HED_TOP_CELL], memory[HED_TOP_CELL], plain[HED_LIVE_TEXT];
    const int bar = g->busy > 0 ? (int)(g->busy * BAR + 0.5) : 0;

    hed_top_percent(g->busy, busy);
    (void)snprintf(memory, sizeof memory, "-");
    if (g->counted)
        hed_top_size(g->memory, memory);
    line_put(l, s->columns, "%2zu GPU-%.8s  busy %5s%s ", index, g->uuid, busy,
             g->busy < 0 ? " " : "%");
    if (s->columns > 60)
        line_put(l, s->columns, "%.*s%.*s  ", bar, "##########", BAR - bar, "----------");
    line_put(l, s->columns, "mem %6s  %s%s", memory, g->policy, g->paused ? ", paused" : "");
    (void)hed_sched_plain(g->user, plain, sizeof plain);
    line_put(l, s->columns, "  %s's", plain);
    (void)hed_sched_plain(g->scope, plain, sizeof plain);
    if (plain[0])
        line_put(l, s->columns, "  scope %s", plain);
}

static void
put_server(const struct hed_top_state *s, size_t index, struct hed_top_page *p)
{
    const struct hed_live_server *v = &s->view->servers[index];
    struct hed_top_line *l = add_line(p, HED_TOP_DEVICE);
    char plain[HED_LIVE_COMMAND], age[HED_TOP_CELL];

    (void)hed_sched_plain(v->address, plain, sizeof plain);
    line_put(l, s->columns, "s%zu %s  ", index, plain);
    (void)hed_sched_plain(v->why, plain, sizeof plain);
    if (plain[0]) {
        line_put(l, s->columns, "%s", plain);
        return;
    }
    (void)hed_sched_plain(v->gpu, plain, sizeof plain);
    hed_top_age(v->uptime, age);
    line_put(l, s->columns, "%s  %llu client%s, %llu refused, up %s%s", plain,
             (unsigned long long)v->clients, v->clients == 1 ? "" : "s",
             (unsigned long long)v->refused, age, v->stopping ? ", stopping" : "");
}

/* Devices and servers, in at most `room` lines. */
static void
put_devices(const struct hed_top_state *s, size_t room, struct hed_top_page *p)
{
    const size_t all = s->view->gpu_count + s->view->server_count;
    const size_t shown = all <= room ? all : room ? room - 1 : 0;

    for (size_t i = 0; i < shown; i++) {
        if (i < s->view->gpu_count)
            put_gpu(s, i, p);
        else
            put_server(s, i - s->view->gpu_count, p);
    }
    if (shown < all && room)
        line_put(add_line(p, HED_TOP_DEVICE), s->columns, "   and %zu more", all - shown);
}

/* ---- the page -------------------------------------------------------------------------------- */

/* Moves the window so that the cursor is in it. */
static void
scroll_rows(struct hed_top_state *s, size_t room)
{
    const size_t count = s->list->count;

    if (s->cursor >= count)
        s->cursor = count ? count - 1 : 0;
    if (s->first > s->cursor)
        s->first = s->cursor;
    if (s->cursor >= s->first + room)
        s->first = s->cursor - room + 1;
    if (s->first + room > count)
        s->first = count > room ? count - room : 0;
}

static void
put_rows(struct hed_top_state *s, const struct layout *lay, size_t room, struct hed_top_page *p)
{
    const struct hed_top_list *list = s->list;

    for (size_t i = s->first; i < list->count && i < s->first + room; i++) {
        const struct hed_top_item *item = &list->items[i];
        struct hed_top_line *l = add_line(p, item->sum ? HED_TOP_SUM : HED_TOP_ROW);

        if (item->sum)
            put_sum(l, lay, s->view, item, s->columns);
        else
            put_row(l, lay, &s->view->rows[item->row], s->choice, s->columns);
        l->chosen = s->lines && i == s->cursor;
    }
    if (list->count == 0 && room)
        line_put(add_line(p, HED_TOP_NOTE), s->columns, "%s",
                 s->view->row_count ? "no program passes the filter"
                                    : "no program (heddle run --sched, heddle serve)");
}

void
hed_top_draw(struct hed_top_state *s, struct hed_top_page *out)
{
    static const char keys[] = "q quit  s sort  / filter  t tree  c command  p pause  + - priority"
                               "  h help";
    const bool small = s->lines && s->lines < SMALL;
    const struct layout lay = lay_columns_out(s->columns);
    size_t room = LINES_MAX;

    out->count = 0;
    out->err = 0;
    /* On a small terminal a note takes the place of the title, and on a tiny one there are rows. */
    if (small && s->note)
        line_put(add_line(out, HED_TOP_NOTE), s->columns, "%s", s->note);
    else if (!small || s->lines >= TINY)
        put_title(s, out);
    if (!small)
        put_devices(s, s->lines ? s->lines / 3 : LINES_MAX, out);
    if (!small || s->lines >= TINY)
        put_heading(out, &lay, s->choice, s->columns);
    if (s->lines)
        room = s->lines > out->count + !small ? s->lines - out->count - !small : 0;
    if (s->lines)
        scroll_rows(s, room);
    put_rows(s, &lay, room, out);
    if (!s->lines || small)
        return;
    while (!out->err && out->count + 1 < s->lines)
        (void)add_line(out, HED_TOP_ROW);
    line_put(add_line(out, HED_TOP_NOTE), s->columns, "%s", s->note ? s->note : keys);
}

void
hed_top_page_free(struct hed_top_page *p)
{
    free(p->lines);
    *p = (struct hed_top_page){0};
}
