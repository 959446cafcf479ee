/* What share/sched/look.h describes: from the bytes of a file to numbers that can be shown. */
#include "share/sched/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/meeting.h"
#include "base/number.h"
#include "share/meet/copy.h"
#include "share/sched/swap.h"

/* Relaxed: of a copy that nobody writes to. */
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* ---- one program ----------------------------------------------------------------------------- */

static void
copy_text(char out[HED_SCHED_NAME], const char *text)
{
    const size_t n = strnlen(text, HED_SCHED_NAME - 1);

    memcpy(out, text, n);
    out[n] = '\0';
}

/* Time that is ahead, as far as it can be true. */
static uint64_t
time_ahead(uint64_t until, uint64_t now)
{
    return until > now ? hed_min(until - now, HED_SCHED_PATIENCE_NS) : 0;
}

/* A wait counts when it has ended; one that lasts is added, so that a program that waits for long
 * does not look as if it did not. */
static uint64_t
read_waited(const struct hed_sched_slot *s, uint64_t now)
{
    const uint64_t since = GET(s->waits_since);
    const uint64_t waited = GET(s->waited);

    return GET(s->waiting) && since && since < now ? waited + (now - since) : waited;
}

static void
read_memory(const struct hed_sched_slot *s, struct hed_sched_program *p)
{
    p->memory_known = GET(s->memory_known);
    p->memory_used = GET(s->memory_used);
    p->memory_limit = GET(s->memory_limit);
}

static void
read_program(const struct hed_sched_slot *s, uint32_t slot, uint64_t now,
             struct hed_sched_program *p)
{
    const uint32_t gate = GET(s->gate);
    const uint32_t priority = GET(s->priority);
    const uint64_t used = GET(s->used);

    p->slot = slot;
    p->pid = GET(s->pid);
    copy_text(p->name, s->name);
    copy_text(p->group, s->group);
    p->priority = priority > HED_PRIORITY_HIGH ? HED_PRIORITY_HIGH : priority;
    p->share = GET(s->weight);
    p->deadline = GET(s->deadline);
    p->waiting = GET(s->waiting);
    p->queued = GET(s->queued);
    p->working = GET(s->working);
    p->open = gate == 0;
    p->paused = GET(s->paused);
    p->out = GET(s->out);
    p->swap = GET(s->swap);
    p->outs = GET(s->outs);
    p->out_ns = hed_sched_out_ns(s, now);
    p->copy_ns = GET(s->copy_ns);
    p->calls = hed_sched_calls(s);
    p->in_flight = time_ahead(GET(s->ends), now);
    /* Work is counted when it is put on the GPU: what is still ahead is not done. */
    p->used = used > p->in_flight ? used - p->in_flight : 0;
    p->waited = read_waited(s, now);
    for (int i = 0; i < HED_SCHED_WAITS; i++)
        p->waits[i] = GET(s->waits[i]);
    p->measured = gate & HED_GATE_WATCH;
    read_memory(s, p);
}

/* ---- one file -------------------------------------------------------------------------------- */

bool
hed_sched_read_name(const char *file, char uuid[HED_SCHED_UUID_DIGITS + 1],
                    char scope[HED_SCHED_NAME])
{
    const size_t begin = strlen(HED_SCHED_BEGIN);
    const size_t n = strlen(file);

    if (strncmp(file, HED_SCHED_BEGIN, begin) != 0 || n < begin + HED_SCHED_UUID_DIGITS ||
        n >= HED_SCHED_MEET_MAX)
        return false;
    memcpy(uuid, file + n - HED_SCHED_UUID_DIGITS, HED_SCHED_UUID_DIGITS + 1);
    if (strspn(uuid, "0123456789abcdef") != HED_SCHED_UUID_DIGITS)
        return false;

    const size_t given = n - begin - HED_SCHED_UUID_DIGITS;

    if (given > HED_SCHED_NAME || (given && file[begin + given - 1] != '-'))
        return false;
    (void)snprintf(scope, HED_SCHED_NAME, "%.*s", given ? (int)given - 1 : 0, file + begin);
    return true;
}

static void
read_common(const struct hed_sched_common *c, struct hed_sched_gpu *g)
{
    const uint32_t policy = GET(c->policy);

    g->policy = policy < HED_POLICY_COUNT ? policy : 0;
    g->paused = GET(c->paused);
    g->hold = GET(c->hold);
    g->cap = GET(c->cap);
    g->slice = GET(c->slice);
    g->batch = GET(c->batch);
    g->batch_wait = GET(c->batch_wait);
}

static void
read_copy(const struct hed_meet_copy *copy, struct hed_sched_gpu *g)
{
    g->user = hed_meet_copy_user(copy);
    g->at = hed_now_ns();
    read_common(hed_meet_copy_common(copy), g);
    for (uint32_t i = 0; i < HED_SCHED_SLOTS; i++) {
        const struct hed_sched_slot *s = hed_meet_copy_slot(copy, i);

        if (GET(s->present) && hed_meet_copy_taken(copy, i))
            read_program(s, i, g->at, &g->programs[g->count++]);
    }
}

struct search {
    const struct hed_meeting_folders *folders;
    struct hed_sched_scene *scene;
    int err;
};

static bool
add_found_file(void *arg, const char *file)
{
    struct search *s = arg;
    struct hed_sched_scene *scene = s->scene;
    const struct hed_meeting_folder *folder = hed_meeting_find(s->folders, file);
    struct hed_sched_gpu *g;
    struct hed_meet_copy *copy = NULL;
    struct hed_why why;
    char uuid[HED_SCHED_UUID_DIGITS + 1];
    char scope[HED_SCHED_NAME];
    int err;

    if (!hed_sched_read_name(file, uuid, scope))
        return true;
    err = hed_meet_copy(folder, file, &hed_sched_shape, &copy, &why);
    if (err && err != HED_ENOTFOUND)
        scene->problem = why;
    if (err)
        return true;
    g = calloc(1, sizeof *g);
    if (g) {
        (void)snprintf(g->file, sizeof g->file, "%s", file);
        memcpy(g->uuid, uuid, sizeof uuid);
        memcpy(g->scope, scope, sizeof scope);
        g->shared = folder->shared;
        read_copy(copy, g);
    }
    hed_meet_copy_free(copy);
    s->err = g ? 0 : HED_ENOMEM;
    if (g && g->count)
        scene->gpus[scene->count++] = g;
    else
        free(g);
    return !s->err && scene->count < HED_SCHED_GPUS;
}

/* ---- all of them ----------------------------------------------------------------------------- */

int
hed_sched_look(const struct hed_meeting_folders *folders, struct hed_sched_scene *out)
{
    struct search s = {.folders = folders, .scene = out};

    if (out->count < HED_SCHED_GPUS)
        hed_meeting_each(folders, add_found_file, &s);
    return s.err;
}

static int
by_uuid(const void *a, const void *b)
{
    const struct hed_sched_gpu *x = *(struct hed_sched_gpu *const *)a;
    const struct hed_sched_gpu *y = *(struct hed_sched_gpu *const *)b;
    int order = strcmp(x->uuid, y->uuid);

    order = order ? order : strcmp(x->scope, y->scope);
    return order ? order : (x->user > y->user) - (x->user < y->user);
}

void
hed_sched_scene_sort(struct hed_sched_scene *s)
{
    if (s->count)
        qsort(s->gpus, s->count, sizeof *s->gpus, by_uuid);
}

void
hed_sched_scene_free(struct hed_sched_scene *s)
{
    while (s->count)
        free(s->gpus[--s->count]);
    s->problem.text[0] = '\0';
}

/* ---- words ----------------------------------------------------------------------------------- */

enum hed_sched_state
hed_sched_state_of(const struct hed_sched_gpu *g, const struct hed_sched_program *p,
                   uint64_t calls_before)
{
    if (p->out)
        return HED_SCHED_OUT;
    if (g->paused || p->paused)
        return HED_SCHED_PAUSED;
    if (p->waiting || p->queued)
        return HED_SCHED_WAITING;
    if (!p->working || (p->open && p->calls == calls_before))
        return HED_SCHED_IDLE;
    return HED_SCHED_RUNNING;
}

const char *
hed_sched_state_name(enum hed_sched_state state)
{
    static const char *const names[HED_SCHED_STATES] = {
        [HED_SCHED_IDLE] = "idle",       [HED_SCHED_RUNNING] = "running",
        [HED_SCHED_WAITING] = "waiting", [HED_SCHED_PAUSED] = "paused",
        [HED_SCHED_OUT] = "out",
    };

    return names[state];
}

const char *
hed_sched_priority_name(uint32_t priority)
{
    return priority == HED_PRIORITY_HIGH ? "high" : priority == HED_PRIORITY_LOW ? "low" : "normal";
}

const char *
hed_sched_policy_name(const struct hed_sched_gpu *g)
{
    return hed_policies[g->policy].name;
}

size_t
hed_sched_plain(const char *text, char *out, size_t size)
{
    size_t n = 0;

    for (; text[n] && n + 1 < size; n++)
        out[n] = (char)(text[n] < ' ' || text[n] > '~' ? '?' : text[n]);
    out[n] = '\0';
    return n;
}

void
hed_sched_put_uuid(struct hed_buf *b, const char uuid[HED_SCHED_UUID_DIGITS + 1])
{
    hed_buf_addf(b, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", uuid, uuid + 8, uuid + 12, uuid + 16,
                 uuid + 20);
}

/* ---- what is asked of programs --------------------------------------------------------------- */

static bool
watch_file(void *arg, const char *file)
{
    struct hed_meet *m;
    struct hed_why ignored;
    char uuid[HED_SCHED_UUID_DIGITS + 1];
    char scope[HED_SCHED_NAME];

    if (!hed_sched_read_name(file, uuid, scope) ||
        hed_meet_look(file, &hed_sched_shape, &m, &ignored) != 0)
        return true;
    (void)hed_sched_watch(m, hed_now_ns());
    hed_meet_leave(m);
    return true;
}

void
hed_sched_watch_all(const struct hed_meeting_folders *folders)
{
    hed_meeting_each(folders, watch_file, NULL);
}

int
hed_sched_change_program(const struct hed_sched_gpu *g, const struct hed_sched_program *p,
                         const struct hed_sched_change *change, struct hed_why *why)
{
    struct hed_meet *m = NULL;
    int err = hed_meet_look(g->file, &hed_sched_shape, &m, why);

    if (err)
        return err;
    err = hed_meet_lock(m);
    if (err) {
        hed_why_set(why, "GPU-%.8s: its shared memory cannot be locked: %s", g->uuid,
                    hed_err_text(err));
        hed_meet_leave(m);
        return err;
    }

    struct hed_sched_slot *s = hed_meet_slot(m, p->slot);

    /* Another program may have its slot by now. */
    if (s && GET(s->present) && GET(s->pid) == p->pid && hed_meet_taken(m, p->slot, NULL)) {
        hed_sched_change_locked(s, change);
        hed_sched_decide_locked(m, hed_now_ns());
    } else {
        hed_why_set(why, "process %d has ended", p->pid);
        err = HED_ENOTFOUND;
    }
    hed_meet_unlock(m);
    hed_meet_leave(m);
    return err;
}
