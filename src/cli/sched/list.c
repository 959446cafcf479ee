/* heddle sched list: a table that fits the terminal, or everything as JSON. */
#include "cli/sched/sched.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/cli.h"
#include "share/share.h"

#define OUTPUT_MAX (4u * 1024 * 1024)
#define GLANCE_NS (20 * HED_NS_PER_MS) /* between two looks at a program that is not measured */
#define WIDTH 100                      /* of a table, unless the terminal is narrower */
#define LINE 80                        /* of the heading above it */
#define OTHERS 64                      /* of all columns but the name */
#define NAME_MIN 8
#define SHORT_MAX 24 /* bytes of a number that was made short */

/* What is shown: the second of two looks, and the calls of each program at the first. */
struct view {
    const struct hed_cli_sched *request;
    struct hed_sched_scene scene;
    bool wanted[HED_SCHED_GPUS][HED_SCHED_SLOTS];    /* by index of GPU and program */
    size_t count[HED_SCHED_GPUS];                    /* how many are wanted */
    uint64_t calls[HED_SCHED_GPUS][HED_SCHED_SLOTS]; /* before, by the same */
};

/* ---- for people ------------------------------------------------------------------------------ */

/* A number in eight columns: 12345678, 1234567k, ... */
static const char *
short_number(uint64_t n, char out[SHORT_MAX])
{
    static const char units[] = "kMGTPE";
    size_t unit = 0;

    if (n < 100000000) {
        snprintf(out, SHORT_MAX, "%" PRIu64, n);
        return out;
    }
    for (n /= 1000; n >= 10000000; n /= 1000)
        unit++;
    snprintf(out, SHORT_MAX, "%" PRIu64 "%c", n, units[unit]);
    return out;
}

static const char *
short_seconds(uint64_t ns, char out[SHORT_MAX])
{
    const uint64_t s = ns / HED_NS_PER_S;

    if (s >= 99999)
        return short_number(s, out);
    snprintf(out, SHORT_MAX, "%.2f", (double)ns / HED_NS_PER_S);
    return out;
}

/* A name that is too long loses its middle, because the clients of one program differ at the end.
 */
static void
cut_name(char *name, size_t width)
{
    const size_t n = strlen(name);
    const size_t end = (width - 1) / 2;

    if (n <= width)
        return;
    name[width - 1 - end] = '+';
    memmove(name + width - end, name + n - end, end + 1);
}

static size_t
terminal_width(void)
{
    const size_t columns = hed_cli_columns();

    return columns && columns < WIDTH ? columns : WIDTH;
}

/* The width of the names: of the longest, or what the terminal has left. */
static size_t
name_width(const struct view *v)
{
    const size_t all = terminal_width();
    const size_t most = all > OTHERS + NAME_MIN ? all - OTHERS : NAME_MIN;
    size_t width = NAME_MIN;
    char name[HED_SCHED_NAME];

    for (size_t i = 0; i < v->scene.count; i++) {
        for (size_t k = 0; k < v->scene.gpus[i]->count; k++) {
            const size_t n = hed_sched_plain(v->scene.gpus[i]->programs[k].name, name, sizeof name);

            width = v->wanted[i][k] && n > width ? n : width;
        }
    }
    return width < most ? width : most;
}

static void
add_head(struct hed_buf *b, const struct hed_sched_gpu *g, size_t index, size_t width)
{
    const size_t begin = b->size;

    hed_buf_addf(b, "%zu  ", index);
    hed_sched_put_uuid(b, g->uuid);
    hed_buf_addf(b, "  policy %s%s", hed_sched_policy_name(g), g->paused ? ", paused" : "");
    if (*g->scope && b->size - begin + strlen(", scope ") + strlen(g->scope) > LINE)
        hed_buf_addf(b, "\n   scope %s", g->scope);
    else if (*g->scope)
        hed_buf_addf(b, ", scope %s", g->scope);
    hed_buf_addf(b, "\n %7s %-*s %-6s %5s %-7s %6s %8s %8s %8s\n", "PID", (int)width, "PROGRAM",
                 "PRIO", "SHARE", "STATE", "HELD", "CALLS", "GPU s", "WAITED s");
}

static void
add_row(struct hed_buf *b, const struct hed_sched_program *p, const char *state, size_t width)
{
    char name[HED_SCHED_NAME];
    char held[SHORT_MAX];
    char calls[SHORT_MAX];
    char used[SHORT_MAX];
    char waited[SHORT_MAX];

    (void)hed_sched_plain(p->name, name, sizeof name);
    cut_name(name, width);
    hed_buf_addf(b, " %7d %-*s %-6s %5u %-7s %6s %8s %8s %8s\n", p->pid, (int)width, name,
                 hed_sched_priority_name(p->priority), p->share, state,
                 short_number((uint64_t)p->waiting + p->queued, held),
                 short_number(p->calls, calls), short_seconds(p->used, used),
                 short_seconds(p->waited, waited));
    if (p->outs)
        hed_buf_addf(b, " %7s out of device memory %u time%s for %s s, copying took %s s\n", "",
                     p->outs, p->outs == 1 ? "" : "s", short_seconds(p->out_ns, used),
                     short_seconds(p->copy_ns, waited));
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void
add_client_text(struct hed_buf *b, const char *key, const char *value, size_t max)
{
    hed_str_field(b, key, value, strnlen(value, max));
}

static void
add_json_head(struct hed_buf *b, const struct hed_sched_gpu *g, size_t index)
{
    hed_buf_addf(b, "{\"index\":%zu,\"uuid\":\"", index);
    hed_sched_put_uuid(b, g->uuid);
    hed_buf_addf(b,
                 "\",\"scope\":\"%s\",\"policy\":\"%s\",\"paused\":%s,\"hold_us\":%" PRIu64
                 ",\"cap_us\":%" PRIu64 ",\"slice_us\":%" PRIu64
                 ",\"batch\":%u,\"batch_wait_us\":%" PRIu64 ",\"clients\":[",
                 g->scope, hed_sched_policy_name(g), g->paused ? "true" : "false", g->hold / 1000,
                 g->cap / 1000, g->slice / 1000, g->batch, g->batch_wait / 1000);
}

static void
add_json_row(struct hed_buf *b, const struct hed_sched_program *p, const char *state)
{
    hed_buf_addf(b, "{\"pid\":%d,", p->pid);
    add_client_text(b, "name", p->name, HED_SCHED_NAME);
    hed_buf_addf(b, ",");
    add_client_text(b, "group", p->group, HED_SCHED_NAME);
    hed_buf_addf(b,
                 ",\"priority\":\"%s\",\"share\":%u,\"deadline_us\":%" PRIu64
                 ",\"state\":\"%s\",\"waiting\":%u,\"queued\":%u,\"in_flight_ms\":%.3f,"
                 "\"calls\":%" PRIu64 ",\"gpu_ns\":%" PRIu64 ",\"waited_ns\":%" PRIu64
                 ",\"swap\":%s,\"outs\":%u,\"out_ns\":%" PRIu64 ",\"copy_ns\":%" PRIu64,
                 hed_sched_priority_name(p->priority), p->share, p->deadline / 1000, state,
                 p->waiting, p->queued, (double)p->in_flight / HED_NS_PER_MS, p->calls, p->used,
                 p->waited, p->swap ? "true" : "false", p->outs, p->out_ns, p->copy_ns);
    if (p->memory_known)
        hed_buf_addf(b, ",\"memory_bytes\":%" PRIu64 ",\"memory_limit_bytes\":%" PRIu64 "}",
                     p->memory_used, p->memory_limit);
    else
        hed_buf_addf(b, ",\"memory_bytes\":null,\"memory_limit_bytes\":null}");
}

/* ---- both ------------------------------------------------------------------------------------ */

static void
add_gpu(struct hed_buf *b, const struct view *v, size_t i, size_t index, size_t width)
{
    const struct hed_sched_gpu *g = v->scene.gpus[i];
    const bool json = v->request->json;
    bool any = false;

    if (json)
        add_json_head(b, g, index);
    else
        add_head(b, g, index, width);
    for (size_t k = 0; k < g->count; k++) {
        const struct hed_sched_program *p = &g->programs[k];
        const char *state = hed_sched_state_name(hed_sched_state_of(g, p, v->calls[i][k]));

        if (!v->wanted[i][k])
            continue;
        if (json && any)
            hed_buf_addf(b, ",");
        any = true;
        if (json)
            add_json_row(b, p, state);
        else
            add_row(b, p, state, width);
    }
    if (json)
        hed_buf_addf(b, "]}");
}

/* The calls that a program had made at an earlier look; all that it has made if it is new. */
static uint64_t
calls_before(const struct hed_sched_scene *earlier, const struct hed_sched_gpu *g,
             const struct hed_sched_program *p)
{
    for (size_t i = 0; i < earlier->count; i++)
        for (size_t k = 0;
             strcmp(earlier->gpus[i]->file, g->file) == 0 && k < earlier->gpus[i]->count; k++)
            if (earlier->gpus[i]->programs[k].slot == p->slot)
                return earlier->gpus[i]->programs[k].calls;
    return p->calls;
}

/* Looks twice, to tell busy programs from idle ones. Programs that have left meanwhile are not
 * shown, nor is a GPU without programs. */
static void
look_twice(struct view *v)
{
    struct hed_sched_scene earlier = {0};

    hed_cli_sched_look(&earlier);
    if (earlier.count) {
        hed_sleep_ns(GLANCE_NS);
        hed_cli_sched_look(&v->scene);
    }
    for (size_t i = 0; i < v->scene.count; i++) {
        const struct hed_sched_gpu *g = v->scene.gpus[i];
        const bool wants = hed_cli_sched_wants_gpu(v->request, &v->scene, i);

        for (size_t k = 0; k < g->count; k++) {
            v->wanted[i][k] = wants && hed_cli_sched_wants_pid(v->request, g->programs[k].pid);
            v->count[i] += v->wanted[i][k];
            v->calls[i][k] = calls_before(&earlier, g, &g->programs[k]);
        }
    }
    hed_sched_scene_free(&earlier);
}

int
hed_cli_sched_list(const struct hed_cli_sched *r)
{
    static struct view v; /* large */
    struct hed_buf b;
    bool any = false;

    v.request = r;
    hed_buf_init(&b, OUTPUT_MAX);
    look_twice(&v);

    const size_t width = name_width(&v);

    if (r->json)
        hed_buf_addf(&b, "{\"gpus\":[");
    for (size_t i = 0; i < v.scene.count; i++) {
        if (v.count[i] == 0)
            continue;
        if (r->json && any)
            hed_buf_addf(&b, ",");
        any = true;
        add_gpu(&b, &v, i, hed_cli_sched_number(r, &v.scene, i), width);
    }
    if (r->json)
        hed_buf_addf(&b, "]}\n");
    else if (!any && r->pid)
        hed_buf_addf(&b, "Process %" PRIu64 " shares no GPU (heddle run --sched).\n", r->pid);
    else if (!any)
        hed_buf_addf(&b, "No program shares a GPU (heddle run --sched).\n");
    fputs(hed_buf_cstr(&b), stdout);
    hed_sched_scene_free(&v.scene);
    hed_buf_fini(&b);
    return HED_EXIT_OK;
}
