/* Views of what runs now, and rates between two of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/meeting.h"
#include "base/str.h"
#include "see/live/parts.h"

#define NAMES_MAX 64 /* users whose names are kept */
#define NAMES_NS (60 * HED_NS_PER_S)
#define ACTIVE_S 1.0 /* a client whose last message is older is idle */

/* What a row was at the last view. */
struct last {
    uint64_t key, calls, used, waited, at;
    uint64_t waits[HED_SCHED_WAITS];
    double rate; /* of a client's calls; < 0: not known */
    bool measured;
    char command[HED_LIVE_COMMAND];
};

struct hed_live_look {
    struct hed_live_watch watch;
    struct hed_live_servers *servers;
    struct hed_sched_scene scene;
    struct hed_live_view view;
    size_t room;             /* for rows */
    struct last *last, *now; /* HED_LIVE_ROWS at most; `last` is sorted by key */
    size_t last_count, last_room, now_room;
    uint64_t at;
    struct {
        uid_t user;
        char name[HED_LIVE_TEXT];
    } names[NAMES_MAX];
    size_t name_count;
    uint64_t names_since;
};

/* ---- life ------------------------------------------------------------------------------------ */

int
hed_live_open(const struct hed_live_how *how, struct hed_live_look **out, struct hed_why *why)
{
    struct hed_live_look *l = calloc(1, sizeof *l);
    int err = l ? 0 : HED_ENOMEM;

    /* The child first: this process has one thread until then. */
    if (!err && how->watch)
        err = hed_live_watch_start(&l->watch, why);
    if (!err)
        err = hed_live_servers_start(how, &l->servers);
    if (err) {
        hed_live_close(l);
        if (!why->text[0])
            hed_why_set(why, "%s", hed_err_text(err));
        return err;
    }
    *out = l;
    return 0;
}

void
hed_live_close(struct hed_live_look *l)
{
    if (!l)
        return;
    hed_live_watch_stop(&l->watch);
    hed_live_servers_stop(l->servers);
    hed_sched_scene_free(&l->scene);
    free(l->view.rows);
    free(l->last);
    free(l->now);
    free(l);
}

void
hed_live_wait(struct hed_live_look *l, uint64_t ns)
{
    const uint64_t end = hed_now_ns() + ns;

    hed_live_watch_wait(&l->watch, ns);
    if (hed_now_ns() < end)
        hed_live_servers_wait(l->servers, end - hed_now_ns());
}

const char *
hed_live_state_name(enum hed_live_state state)
{
    return state == HED_LIVE_FAILED ? "failed" : hed_sched_state_name((enum hed_sched_state)state);
}

/* ---- users ----------------------------------------------------------------------------------- */

/* The names are asked for again now and then: a directory service may be slow, and may change. */
static void
name_user(struct hed_live_look *l, uid_t user, char out[HED_LIVE_TEXT])
{
    size_t i = 0;

    if (l->at - l->names_since > NAMES_NS) {
        l->name_count = 0;
        l->names_since = l->at;
    }
    while (i < l->name_count && l->names[i].user != user)
        i++;
    if (i == NAMES_MAX) {
        hed_live_user_name(user, out);
        return;
    }
    if (i == l->name_count) {
        l->names[i].user = user;
        hed_live_user_name(user, l->names[i].name);
        l->name_count++;
    }
    (void)hed_str_copy(out, HED_LIVE_TEXT, l->names[i].name);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Makes room for one more row. NULL: there is none, or no memory. */
static struct hed_live_row *
add_row(struct hed_live_look *l)
{
    struct hed_live_view *v = &l->view;

    if (v->row_count == l->room) {
        const size_t room = l->room ? 2 * l->room : 64;
        struct hed_live_row *rows =
            room <= HED_LIVE_ROWS ? realloc(v->rows, room * sizeof *rows) : NULL;

        if (!rows)
            return NULL;
        v->rows = rows;
        l->room = room;
    }

    struct hed_live_row *r = &v->rows[v->row_count++];

    *r = (struct hed_live_row){.busy = -1, .wait = -1, .rate = -1};
    return r;
}

static struct last *
add_last(struct hed_live_look *l, size_t count)
{
    if (count == l->now_room) {
        const size_t room = l->now_room ? 2 * l->now_room : 64;
        struct last *more = realloc(l->now, room * sizeof *more);

        if (!more)
            return NULL;
        l->now = more;
        l->now_room = room;
    }
    return &l->now[count];
}

static uint64_t
hash_text(uint64_t hash, const char *text)
{
    return (hash ^ hed_str_hash(text, strlen(text))) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Tells a program of a GPU from all others, in this and later views. */
static uint64_t
key_of_program(const struct hed_sched_gpu *g, const struct hed_sched_program *p)
{
    const uint64_t who = (uint64_t)(uint32_t)p->pid << 32 | p->slot;

    return hash_text(who * UINT64_C(0xff51afd7ed558ccd) + g->user, g->file);
}

static int
by_key(const void *a, const void *b)
{
    const struct last *x = a;
    const struct last *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* What the row was at the last view; NULL if it is new. */
static const struct last *
find_last(const struct hed_live_look *l, uint64_t key)
{
    const struct last wanted = {.key = key};

    return l->last_count ? bsearch(&wanted, l->last, l->last_count, sizeof *l->last, by_key) : NULL;
}

/* The length that 99 % of the waits since the last view did not reach; 0: there were none. */
static uint64_t
p99_of(const uint64_t *now, const uint64_t *before)
{
    uint64_t counts[HED_SCHED_WAITS];
    uint64_t sum = 0, seen = 0;

    for (int i = 0; i < HED_SCHED_WAITS; i++) {
        counts[i] = now[i] > before[i] ? now[i] - before[i] : 0;
        sum = counts[i] > UINT32_MAX ? sum : sum + counts[i];
    }
    for (int i = 0; sum && i < HED_SCHED_WAITS; i++) {
        seen += counts[i] > UINT32_MAX ? 0 : counts[i];
        if (seen * 100 >= sum * 99)
            return 1000ull << i;
    }
    return 0;
}

/* A part of the time that has gone by; more than all of it means several threads, or an estimate
 * that was wrong. */
static double
part_of(uint64_t now, uint64_t before, uint64_t ns)
{
    const double part = now > before && ns ? (double)(now - before) / (double)ns : 0;

    return part < 1 ? part : 1;
}

static void
add_rates(struct hed_live_row *r, const struct hed_sched_program *p, const struct last *last,
          uint64_t at)
{
    const uint64_t ns = at > last->at ? at - last->at : 0;

    if (!ns || p->calls < last->calls)
        return;
    r->rate = (double)(p->calls - last->calls) * HED_NS_PER_S / (double)ns;
    r->wait = part_of(p->waited, last->waited, ns);
    r->p99 = p99_of(p->waits, last->waits);
    if (p->measured && last->measured)
        r->busy = part_of(p->used, last->used, ns);
}

static void
fill_program(struct hed_live_look *l, struct hed_live_row *r, const struct hed_sched_gpu *g,
             const struct hed_sched_program *p, const struct last *last)
{
    uid_t user = g->user;

    if (g->shared && !hed_live_user_of(p->pid, &user))
        user = g->user;
    name_user(l, user, r->user);
    r->pid = p->pid;
    (void)hed_str_copy(r->name, sizeof r->name, p->name);
    (void)hed_str_copy(r->group, sizeof r->group, p->group);
    if (last)
        memcpy(r->command, last->command, sizeof r->command);
    else
        hed_live_command_of(p->pid, user, r->command);
    r->state = (enum hed_live_state)hed_sched_state_of(g, p, last ? last->calls : p->calls);
    r->priority = p->priority;
    r->share = p->share;
    r->memory_known = p->memory_known;
    r->memory = p->memory_used;
    r->memory_limit = p->memory_limit;
    r->calls = p->calls;
    r->used = p->used;
    r->waited = p->waited;
    r->mine = g->shared || g->user == geteuid();
    r->program = p;
    if (last)
        add_rates(r, p, last, g->at);
}

static bool
add_program(struct hed_live_look *l, size_t gpu, const struct hed_sched_gpu *g,
            const struct hed_sched_program *p)
{
    const uint64_t key = key_of_program(g, p);
    struct last *now = add_last(l, l->view.row_count);
    struct hed_live_row *r = now ? add_row(l) : NULL;

    if (!r)
        return false;
    r->key = key;
    r->where = gpu;
    fill_program(l, r, g, p, find_last(l, key));
    *now = (struct last){.key = key,
                         .calls = p->calls,
                         .used = p->used,
                         .waited = p->waited,
                         .at = g->at,
                         .measured = p->measured};
    memcpy(now->waits, p->waits, sizeof now->waits);
    memcpy(now->command, r->command, sizeof now->command);
    return true;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static void
add_gpu(struct hed_live_look *l, const struct hed_sched_gpu *g)
{
    struct hed_live_view *v = &l->view;
    struct hed_live_gpu *out = &v->gpus[v->gpu_count];

    *out = (struct hed_live_gpu){
        .policy = hed_sched_policy_name(g), .paused = g->paused, .programs = g->count, .busy = -1};
    memcpy(out->uuid, g->uuid, sizeof out->uuid);
    memcpy(out->scope, g->scope, sizeof out->scope);
    name_user(l, g->user, out->user);
    for (size_t i = 0; i < g->count && add_program(l, v->gpu_count, g, &g->programs[i]); i++) {
        const struct hed_live_row *r = &v->rows[v->row_count - 1];

        out->counted += r->memory_known;
        out->memory += r->memory_known ? r->memory : 0;
        if (r->busy >= 0)
            out->busy = (out->busy > 0 ? out->busy : 0) + r->busy;
    }
    out->busy = out->busy < 1 ? out->busy : 1; /* estimates: the sum may be more */
    v->gpu_count++;
}

static void
look_at(struct hed_live_look *l, const struct hed_meeting_folders *folders, int *err)
{
    const int e = hed_sched_look(folders, &l->scene);

    *err = *err ? *err : e;
}

/* Looks at the programs of this process's user and, as root, of all others. */
static int
look_at_all(struct hed_live_look *l)
{
    static uid_t users[HED_LIVE_USERS];
    struct hed_meeting_folders folders;
    struct hed_why why = {""};
    int err = 0;
    const int e = hed_meeting_open(false, &folders, &why);

    hed_sched_scene_free(&l->scene);
    if (e && e != HED_ENOTFOUND)
        l->scene.problem = why;
    if (!e) {
        look_at(l, &folders, &err);
        hed_meeting_close(&folders);
    }

    const size_t count = geteuid() == 0 ? hed_meeting_users(users, HED_LIVE_USERS) : 0;

    for (size_t i = 0; i < count && !err; i++) {
        if (hed_meeting_open_of(users[i], &folders, &why) != 0)
            continue;
        look_at(l, &folders, &err);
        hed_meeting_close(&folders);
    }
    hed_sched_scene_sort(&l->scene);
    return err;
}

/* ---- servers --------------------------------------------------------------------------------- */

static void
fill_client(struct hed_live_look *l, struct hed_live_row *r, const struct hed_live_answer *a,
            const struct hed_live_client *c)
{
    r->is_client = true;
    r->pid = c->pid;
    if (c->has_user)
        name_user(l, c->user, r->user);
    else
        (void)hed_str_copy(r->user, sizeof r->user, c->certificate);
    (void)hed_str_copy(r->name, sizeof r->name, c->program);
    (void)hed_str_copy(r->from, sizeof r->from, c->peer);
    r->state = c->failure           ? HED_LIVE_FAILED
               : c->parked          ? HED_LIVE_OUT
               : c->idle > ACTIVE_S ? HED_LIVE_IDLE
                                    : HED_LIVE_RUNNING;
    r->memory_known = true;
    r->memory = c->leased;
    r->memory_limit = a->limit;
    r->calls = c->launches;
}

static bool
add_client(struct hed_live_look *l, size_t server, const struct hed_live_answer *a,
           const struct hed_live_client *c)
{
    const uint64_t key = hash_text(c->worker * UINT64_C(0xc4ceb9fe1a85ec53), a->server.address);
    const struct last *last = find_last(l, key);
    struct last *now = add_last(l, l->view.row_count);
    struct hed_live_row *r = now ? add_row(l) : NULL;

    if (!r)
        return false;
    r->key = key;
    r->where = server;
    fill_client(l, r, a, c);
    if (last && a->at > last->at && c->launches >= last->calls)
        r->rate = (double)(c->launches - last->calls) * HED_NS_PER_S / (double)(a->at - last->at);
    /* The same answer again: the rate is still that since the one before. */
    else if (last && a->at == last->at)
        r->rate = last->rate;
    *now = (struct last){.key = key, .calls = c->launches, .at = a->at, .rate = r->rate};
    return true;
}

static void
add_servers(struct hed_live_look *l)
{
    struct hed_live_view *v = &l->view;
    struct hed_live_answer answers[HED_LIVE_SERVERS];

    v->server_count = hed_live_servers_take(l->servers, answers);
    for (size_t i = 0; i < v->server_count; i++) {
        v->servers[i] = answers[i].server;
        for (size_t k = 0; k < answers[i].count; k++)
            if (!add_client(l, i, &answers[i], &answers[i].clients[k]))
                break;
        free(answers[i].clients);
    }
}

/* ---- a view ---------------------------------------------------------------------------------- */

int
hed_live_sample(struct hed_live_look *l, const struct hed_live_view **out)
{
    struct hed_live_view *v = &l->view;
    const uint64_t before = l->at;
    int err;

    hed_live_watch_check(&l->watch);
    l->at = hed_now_ns();
    err = look_at_all(l);
    if (err)
        return err;
    v->wall = hed_wall_ns();
    v->seconds = before ? (double)(l->at - before) / HED_NS_PER_S : 0;
    v->problem = l->scene.problem;
    v->gpu_count = v->row_count = 0;
    for (size_t i = 0; i < l->scene.count; i++)
        add_gpu(l, l->scene.gpus[i]);
    add_servers(l);

    struct last *old = l->last;
    const size_t room = l->last_room;

    l->last = l->now;
    l->last_room = l->now_room;
    l->last_count = v->row_count;
    l->now = old;
    l->now_room = room;
    if (l->last_count)
        qsort(l->last, l->last_count, sizeof *l->last, by_key);
    *out = v;
    return 0;
}

int
hed_live_change(struct hed_live_look *l, const struct hed_live_row *row,
                const struct hed_sched_change *change, struct hed_why *why)
{
    if (!row->program) {
        hed_why_set(why, "clients of a server cannot be changed");
        return HED_ENOTSUP;
    }
    if (!row->mine) {
        hed_why_set(why, "process %d belongs to %s, who alone can change it", row->pid, row->user);
        return HED_EACCESS;
    }
    return hed_sched_change_program(l->scene.gpus[row->where], row->program, change, why);
}
