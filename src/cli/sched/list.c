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

#define GET HED_CLI_GET
#define OUTPUT_MAX (4u * 1024 * 1024)
#define GLANCE_NS (20 * HED_NS_PER_MS) /* between two looks at a program that is not measured */
#define WIDTH 100                      /* of a table, unless the terminal is narrower */
#define LINE 80                        /* of the heading above it */
#define OTHERS 64                      /* of all columns but the name */
#define NAME_MIN 8
#define SHORT_MAX 24 /* bytes of a number that was made short */

/* The programs of a GPU that are shown, and how many calls they had made a moment ago. */
struct view {
    uint32_t count;
    uint32_t places[HED_SCHED_SLOTS];
    uint64_t calls[HED_SCHED_SLOTS]; /* by place */
};

static const char *
state_of(const struct hed_sched_slot *p, bool everybody_paused, uint64_t calls_before)
{
    const uint32_t gate = GET(p->gate);

    if (GET(p->out))
        return "out";
    if (everybody_paused || GET(p->paused))
        return "paused";
    if (GET(p->waiting) || GET(p->queued))
        return "waiting";
    if (!GET(p->working) || (gate == 0 && hed_sched_calls(p) == calls_before))
        return "idle";
    return "running";
}

static const char *
priority_name(uint32_t priority)
{
    return priority == HED_PRIORITY_HIGH ? "high" : priority == HED_PRIORITY_LOW ? "low" : "normal";
}

static const char *
policy_name(const struct hed_sched_common *c)
{
    const uint32_t i = GET(c->policy);

    return i < HED_POLICY_COUNT ? hed_policies[i].name : "?";
}

/* Writes a UUID as nvidia-smi does. */
static void
add_uuid(struct hed_buf *b, const char *uuid)
{
    hed_buf_addf(b, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", uuid, uuid + 8, uuid + 12, uuid + 16,
                 uuid + 20);
}

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

/* A program's name as plain letters, whatever is in shared memory. */
static size_t
plain_name(const struct hed_sched_slot *p, char out[HED_SCHED_NAME])
{
    snprintf(out, HED_SCHED_NAME, "%.*s", HED_SCHED_NAME - 1, p->name);
    for (char *c = out; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    return strlen(out);
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
name_width(const struct hed_cli_gpu *gpus, const struct view *views, size_t count)
{
    const size_t all = terminal_width();
    const size_t most = all > OTHERS + NAME_MIN ? all - OTHERS : NAME_MIN;
    size_t width = NAME_MIN;
    char name[HED_SCHED_NAME];

    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < views[i].count; k++) {
            const size_t n = plain_name(hed_meet_slot(gpus[i].meet, views[i].places[k]), name);

            width = n > width ? n : width;
        }
    }
    return width < most ? width : most;
}

static void
add_head(struct hed_buf *b, const struct hed_cli_gpu *g, size_t index, size_t width)
{
    const struct hed_sched_common *c = hed_meet_common(g->meet);
    const size_t begin = b->size;

    hed_buf_addf(b, "%zu  ", index);
    add_uuid(b, g->uuid);
    hed_buf_addf(b, "  policy %s%s", policy_name(c), GET(c->paused) ? ", paused" : "");
    if (*g->scope && b->size - begin + strlen(", scope ") + strlen(g->scope) > LINE)
        hed_buf_addf(b, "\n   scope %s", g->scope);
    else if (*g->scope)
        hed_buf_addf(b, ", scope %s", g->scope);
    hed_buf_addf(b, "\n %7s %-*s %-6s %5s %-7s %6s %8s %8s %8s\n", "PID", (int)width, "PROGRAM",
                 "PRIO", "SHARE", "STATE", "HELD", "CALLS", "GPU s", "WAITED s");
}

static void
add_row(struct hed_buf *b, const struct hed_sched_slot *p, const char *state, size_t width)
{
    char name[HED_SCHED_NAME];
    char held[SHORT_MAX];
    char calls[SHORT_MAX];
    char used[SHORT_MAX];
    char waited[SHORT_MAX];

    (void)plain_name(p, name);
    cut_name(name, width);
    hed_buf_addf(b, " %7d %-*s %-6s %5u %-7s %6s %8s %8s %8s\n", GET(p->pid), (int)width, name,
                 priority_name(GET(p->priority)), GET(p->weight), state,
                 short_number((uint64_t)GET(p->waiting) + GET(p->queued), held),
                 short_number(hed_sched_calls(p), calls), short_seconds(GET(p->used), used),
                 short_seconds(GET(p->waited), waited));
    if (GET(p->outs))
        hed_buf_addf(b, " %7s out of device memory %u time%s for %s s, copying took %s s\n", "",
                     GET(p->outs), GET(p->outs) == 1 ? "" : "s",
                     short_seconds(hed_sched_out_ns(p, hed_now_ns()), used),
                     short_seconds(GET(p->copy_ns), waited));
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void
add_client_text(struct hed_buf *b, const char *key, const char *value, size_t max)
{
    hed_str_field(b, key, value, strnlen(value, max));
}

static void
add_json_head(struct hed_buf *b, const struct hed_cli_gpu *g, size_t index)
{
    const struct hed_sched_common *c = hed_meet_common(g->meet);

    hed_buf_addf(b, "{\"index\":%zu,\"uuid\":\"", index);
    add_uuid(b, g->uuid);
    hed_buf_addf(b,
                 "\",\"scope\":\"%s\",\"policy\":\"%s\",\"paused\":%s,\"hold_us\":%" PRIu64
                 ",\"cap_us\":%" PRIu64 ",\"slice_us\":%" PRIu64
                 ",\"batch\":%u,\"batch_wait_us\":%" PRIu64 ",\"clients\":[",
                 g->scope, policy_name(c), GET(c->paused) ? "true" : "false", GET(c->hold) / 1000,
                 GET(c->cap) / 1000, GET(c->slice) / 1000, GET(c->batch),
                 GET(c->batch_wait) / 1000);
}

static void
add_json_row(struct hed_buf *b, const struct hed_sched_slot *p, const char *state)
{
    const uint64_t now = hed_now_ns();
    const uint64_t ends = GET(p->ends);

    hed_buf_addf(b, "{\"pid\":%d,", GET(p->pid));
    add_client_text(b, "name", p->name, HED_SCHED_NAME);
    hed_buf_addf(b, ",");
    add_client_text(b, "group", p->group, HED_SCHED_NAME);
    hed_buf_addf(b,
                 ",\"priority\":\"%s\",\"share\":%u,\"deadline_us\":%" PRIu64
                 ",\"state\":\"%s\",\"waiting\":%u,\"queued\":%u,\"in_flight_ms\":%.3f,"
                 "\"calls\":%" PRIu64 ",\"gpu_ns\":%" PRIu64 ",\"waited_ns\":%" PRIu64
                 ",\"swap\":%s,\"outs\":%u,\"out_ns\":%" PRIu64 ",\"copy_ns\":%" PRIu64 "}",
                 priority_name(GET(p->priority)), GET(p->weight), GET(p->deadline) / 1000, state,
                 GET(p->waiting), GET(p->queued),
                 ends > now ? (double)(ends - now) / HED_NS_PER_MS : 0, hed_sched_calls(p),
                 GET(p->used), GET(p->waited), GET(p->swap) ? "true" : "false", GET(p->outs),
                 hed_sched_out_ns(p, now), GET(p->copy_ns));
}

/* ---- both ------------------------------------------------------------------------------------ */

static void
add_gpu(struct hed_buf *b, bool json, const struct hed_cli_gpu *g, size_t index,
        const struct view *v, size_t width)
{
    const struct hed_sched_common *c = hed_meet_common(g->meet);

    if (json)
        add_json_head(b, g, index);
    else
        add_head(b, g, index, width);
    for (uint32_t i = 0; i < v->count; i++) {
        const struct hed_sched_slot *p = hed_meet_slot(g->meet, v->places[i]);
        const char *state = state_of(p, GET(c->paused), v->calls[v->places[i]]);

        if (json && i)
            hed_buf_addf(b, ",");
        if (json)
            add_json_row(b, p, state);
        else
            add_row(b, p, state, width);
    }
    if (json)
        hed_buf_addf(b, "]}");
}

/* Looks twice, to tell busy programs from idle ones. Programs that have left meanwhile are not
 * shown, nor is a GPU without programs. */
static void
look_twice(const struct hed_cli_sched *r, const struct hed_cli_gpu *gpus, struct view *views,
           size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < HED_SCHED_SLOTS; k++)
            views[i].calls[k] = hed_sched_calls(hed_meet_slot(gpus[i].meet, k));
    if (count)
        hed_sleep_ns(GLANCE_NS);
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; gpus[i].meant && k < HED_SCHED_SLOTS; k++)
            if (hed_cli_sched_meant(r, &gpus[i], k))
                views[i].places[views[i].count++] = k;
}

int
hed_cli_sched_list(const struct hed_cli_sched *r, const struct hed_cli_gpu *gpus, size_t count)
{
    static struct view views[HED_CLI_GPUS];
    struct hed_buf b;
    bool any = false;

    hed_buf_init(&b, OUTPUT_MAX);
    look_twice(r, gpus, views, count);

    const size_t width = name_width(gpus, views, count);

    if (r->json)
        hed_buf_addf(&b, "{\"gpus\":[");
    for (size_t i = 0; i < count; i++) {
        if (views[i].count == 0)
            continue;
        if (r->json && any)
            hed_buf_addf(&b, ",");
        any = true;
        add_gpu(&b, r->json, &gpus[i], i, &views[i], width);
    }
    if (r->json)
        hed_buf_addf(&b, "]}\n");
    else if (!any && r->pid)
        hed_buf_addf(&b, "Process %" PRIu64 " shares no GPU (heddle run --sched).\n", r->pid);
    else if (!any)
        hed_buf_addf(&b, "No program shares a GPU (heddle run --sched).\n");
    fputs(hed_buf_cstr(&b), stdout);
    hed_buf_fini(&b);
    return HED_EXIT_OK;
}
