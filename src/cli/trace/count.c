/* Counts the calls of traces, and tells them as JSON. */
#include "cli/trace/count.h"

#include <inttypes.h>
#include <string.h>

#include "cli/trace/util.h"
#include "core/call.h"
#include "see/see.h"

void
hed_count_init(struct hed_count *s)
{
    hed_buf_init(&s->text, HED_CLI_LINE_MAX);
    hed_buf_init(&s->json, 64u << 20);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* The line of a call + 1, or 0 if there is no memory. It is found by the numbers in the record, so
 * that each name is made only once per file. */
static uint32_t
line_of_call(struct hed_count *s, struct hed_cli_map *known, const struct hed_trace *t,
             const struct hed_trace_record *r, uint64_t thread_number)
{
    const uint64_t key = thread_number << 24 | (uint64_t)r->api << 16 | r->call;
    uint32_t line = hed_cli_map_get(known, key);
    struct hed_trace_facts facts;
    char label[80];

    if (line)
        return line;
    hed_trace_facts(t, r, &facts);
    hed_buf_reset(&s->text);
    if (facts.name)
        hed_buf_addf(&s->text, "%s", facts.name);
    else
        hed_trace_print_name(t, r, &s->text);
    if (s->by_thread && s->many)
        snprintf(label, sizeof(label), "%" PRIu64 "/%" PRIu64, hed_trace_info_u64(t, "pid"),
                 r->thread);
    else
        hed_cli_trace_thread(t, r->thread, label, sizeof(label));
    line = hed_table_line(&s->calls, hed_buf_cstr(&s->text), s->by_thread ? label : NULL);
    return line && hed_cli_map_put(known, key, line) ? line : 0;
}

/* False if there is no memory. */
static bool
add_record(struct hed_count *s, size_t line, const struct hed_trace_record *r, bool error)
{
    const bool timed = !(r->flags & HED_TRACE_UNTIMED);

    hed_call_stats_repeat(&s->calls.stats, line, r->calls - timed, error && !timed);
    return !timed || hed_call_stats_add(&s->calls.stats, line, r->duration, error);
}

/* Did the call launch kernels or a graph? Each kind of call is looked up once per file. */
static bool
is_launch(struct hed_cli_map *kinds, const struct hed_trace *t, const struct hed_trace_record *r)
{
    enum { OTHER = 1, LAUNCH };
    const uint64_t key = (uint64_t)r->api << 16 | r->call;
    uint32_t kind = hed_cli_map_get(kinds, key);

    if (!kind) {
        const struct hed_schema_call *call = hed_schema_call(hed_trace_schema(t, r->api), r->call);
        const struct hed_call_info *info = hed_cli_trace_info(r, call ? call->name : NULL);

        kind = info && info->does == HED_DOES_LAUNCH ? LAUNCH : OTHER;
        (void)hed_cli_map_put(kinds, key, kind); /* or it is looked up again */
    }
    return kind == LAUNCH;
}

static void
count_calls(struct hed_count *s, const struct hed_trace *t, struct hed_count_totals *totals)
{
    struct hed_cli_map known = {0};
    struct hed_cli_map threads = {0};
    struct hed_cli_map kinds = {0};
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_record r;

    while (hed_trace_next(&c, &r)) {
        uint32_t thread = 0;

        if (r.kind != HED_TRACE_CALL)
            continue;
        if (s->by_thread) {
            thread = hed_cli_map_get(&threads, r.thread);
            if (!thread && hed_cli_map_put(&threads, r.thread, (uint32_t)threads.count + 1))
                thread = (uint32_t)threads.count;
        }

        const bool error = hed_trace_is_error(t, &r);
        const uint32_t line = line_of_call(s, &known, t, &r, thread);

        totals->calls += r.calls;
        totals->errors += error;
        totals->launches += !error && is_launch(&kinds, t, &r);
        if (!line || !add_record(s, line - 1, &r, error))
            s->full = true;
    }
    hed_cli_map_fini(&known);
    hed_cli_map_fini(&threads);
    hed_cli_map_fini(&kinds);
}

void
hed_count_add(struct hed_count *s, const struct hed_trace *t, struct hed_count_totals *totals)
{
    *totals = (struct hed_count_totals){.calls = 0};
    s->gpu.many = s->many;
    count_calls(s, t, totals);
    hed_gpu_add(&s->gpu, t, &totals->gpus);
}

void
hed_count_finish(struct hed_count *s, enum hed_table_sort sort)
{
    hed_table_finish(&s->calls, sort);
    hed_gpu_finish(&s->gpu, sort);
    s->full |= s->gpu.full;
}

void
hed_count_fini(struct hed_count *s)
{
    hed_table_fini(&s->calls);
    hed_gpu_fini(&s->gpu);
    hed_buf_fini(&s->text);
    hed_buf_fini(&s->json);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void
hed_count_describe(struct hed_count *s, const char *path, const struct hed_trace *t,
                   const struct hed_count_totals *n)
{
    const struct hed_trace_state *state = hed_trace_state(t);
    struct hed_buf *b = &s->json;

    hed_buf_addf(b, "%s{\"path\":", b->size ? "," : "");
    hed_cli_json_text(b, path);
    hed_buf_addf(b, ",\"program\":");
    hed_cli_json_text(b, hed_cli_trace_program(t, &s->text));
    hed_buf_addf(b, ",\"pid\":%" PRIu64 ",\"clock_wall_ns\":%" PRIu64 ",\"chain\":",
                 hed_trace_info_u64(t, "pid"), hed_trace_info_u64(t, "clock_wall"));
    hed_cli_json_text(b, hed_trace_info(t, "chain"));
    hed_buf_addf(b,
                 ",\"duration_ns\":%" PRIu64 ",\"threads\":%" PRIu64 ",\"records\":%" PRIu64
                 ",\"calls\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"dropped\":%" PRIu64,
                 hed_cli_trace_time(t, state->last), state->threads, state->records, n->calls,
                 n->errors, state->dropped);
    hed_buf_addf(b,
                 ",\"blocks_lost\":%" PRIu64 ",\"bytes_lost\":%" PRIu64 ",\"bytes_cut\":%" PRIu64
                 ",\"closed\":%s,",
                 state->blocks_bad, state->bytes_lost, state->bytes_cut,
                 state->ended ? "true" : "false");
    hed_buf_addf(b, "\"launches\":%" PRIu64 ",\"launches_named\":%" PRIu64 ",\"gpu_clock\":",
                 n->launches, n->gpus.named);
    hed_cli_json_text(b, hed_gpu_clock(t));
    hed_buf_addf(b, ",");
    hed_gpu_json_devices(&n->gpus, b);
    hed_buf_addf(b, "}");
}

void
hed_count_json(const struct hed_count *s, FILE *out)
{
    struct hed_buf b;

    hed_buf_init(&b, HED_CLI_LINE_MAX);
    fprintf(out, "{\"files\":[%s],\"calls\":[", hed_buf_cstr(&s->json));
    for (size_t i = 0; i < s->calls.stats.count; i++) {
        const struct hed_call_stats_line *l = &s->calls.stats.lines[i];

        hed_buf_reset(&b);
        hed_buf_addf(&b, "%s\n{\"name\":", i ? "," : "");
        hed_cli_json_text(&b, l->name);
        if (l->thread) {
            hed_buf_addf(&b, ",\"thread\":");
            hed_cli_json_text(&b, l->thread);
        }
        hed_buf_addf(&b,
                     ",\"count\":%" PRIu64 ",\"timed\":%" PRIu64 ",\"total_ns\":%" PRIu64
                     ",\"mean_ns\":%.1f,\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64
                     ",\"max_ns\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"approximate\":%s}",
                     hed_call_stats_calls(l), l->count, hed_call_stats_total(l),
                     hed_call_stats_mean(l), l->p50, l->p99, l->max, l->errors,
                     l->buckets ? "true" : "false");
        fputs(hed_buf_cstr(&b), out);
    }
    fprintf(out, "],");
    hed_gpu_json(&s->gpu, out);
    fprintf(out, "}\n");
    hed_buf_fini(&b);
}
