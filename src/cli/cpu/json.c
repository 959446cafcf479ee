/* A kernel as one line of JSON. heddle-cpu(1) describes the members. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "base/str.h"
#include "cli/cpu/cpu.h"

#define LINE_MAX_BYTES ((size_t)1 << 30)

static void
add_text(struct hed_buf *b, const char *key, const char *value)
{
    hed_str_field(b, key, value, strlen(value));
}

static const char *
rows_word(enum hed_rows rows)
{
    static const char *const words[] = {
        [HED_ROWS_ANY] = "any", [HED_ROWS_FLAT] = "flat", [HED_ROWS_32] = "32",
        [HED_ROWS_16] = "16",   [HED_ROWS_8] = "8",       [HED_ROWS_ONE] = "one"};

    return words[rows];
}

static void
add_cost_object(struct hed_buf *b, const struct hed_explain_cost *c)
{
    hed_buf_addf(b, "\"cost\":{\"numbers\":%u,\"vectors\":%u,\"singles\":%u,\"slow\":%u}",
                 c->numbers, c->vectors, c->singles, c->slow);
}

static void
add_state(struct hed_buf *b, const struct hed_cpu_subject *s)
{
    const struct hed_cpu_made *m = &s->made;

    if (s->is_lifted)
        hed_buf_addf(b, ",\"lifted\":true");
    if (s->shown) {
        hed_buf_addf(b, ",");
        add_text(b, "tier", hed_cpu_tier_text(s->shown));
        hed_buf_addf(b, ",\"launches\":%" PRIu64 ",\"baseline_ns\":%" PRIu64,
                     (uint64_t)s->shown->launches, (uint64_t)s->shown->baseline_ns);
    }
    if (m->is_known) {
        hed_buf_addf(b, ",");
        add_text(b, "shape", hed_cpu_shape_word(m->info.made));
        hed_buf_addf(b, ",\"cut\":%s,\"frame\":%u,\"compile_us\":%u,\"cached\":%s",
                     m->info.flags & HED_PTX_CUT ? "true" : "false", m->info.frame, m->us,
                     m->is_cached ? "true" : "false");
        if (m->bytes)
            hed_buf_addf(b, ",\"code_bytes\":%zu", m->bytes);
    }
    if (m->why.text[0] || s->explained.why) {
        hed_buf_addf(b, ",");
        add_text(b, "why", m->why.text[0] ? m->why.text : s->explained.why);
    }
}

static void
add_counts(struct hed_buf *b, const struct hed_explain *e)
{
    hed_buf_addf(b, ",\"computes\":{\"once\":%u,\"row\":%u,\"lanes\":%u}", e->ways[HED_ONCE],
                 e->ways[HED_PER_ROW], e->ways[HED_PER_LANE]);
    hed_buf_addf(b,
                 ",\"accesses\":{\"one\":%u,\"row\":%u,\"steps\":%u,"
                 "\"offsets\":%u,\"anywhere\":%u},",
                 e->accesses[HED_ACCESS_ONE], e->accesses[HED_ACCESS_ROW],
                 e->accesses[HED_ACCESS_STEPS], e->accesses[HED_ACCESS_OFFSETS],
                 e->accesses[HED_ACCESS_ANYWHERE]);
    add_cost_object(b, &e->cost);
    hed_buf_addf(b, ",\"loops\":[");
    for (uint32_t i = 0; i < e->nloops; i++) {
        const struct hed_explain_loop *l = &e->loops[i];

        hed_buf_addf(b, "%s{\"first\":%u,\"last\":%u,\"lane_by_lane\":%s,\"one_by_one\":%s,",
                     i ? "," : "", l->first, l->last, l->is_solo ? "true" : "false",
                     l->leaves_singly ? "true" : "false");
        add_cost_object(b, &l->cost);
        hed_buf_addf(b, "}");
    }
    hed_buf_addf(b, "]");
}

static void
add_line_head(struct hed_buf *b, const struct hed_explain_line *l, bool *any)
{
    char text[4096];

    hed_buf_addf(b, "%s{\"line\":%u,", *any ? "," : "", l->line);
    add_text(b, "text", hed_cpu_inst_text(l->inst, text, sizeof text));
    *any = true;
}

static void
add_findings(struct hed_buf *b, const struct hed_explain *e)
{
    bool any = false;

    hed_buf_addf(b, ",\"gathers\":[");
    for (uint32_t i = 0; i < e->nlines; i++) {
        const struct hed_explain_line *l = &e->lines[i];

        if (l->access != HED_ACCESS_ANYWHERE)
            continue;
        add_line_head(b, l, &any);
        hed_buf_addf(b, ",");
        add_text(b, "cause", l->cause);
        hed_buf_addf(b, ",\"cause_line\":%u}", l->cause_line);
    }
    any = false;
    hed_buf_addf(b, "],\"barriers\":[");
    for (uint32_t i = 0; i < e->nlines; i++) {
        const struct hed_explain_line *l = &e->lines[i];

        if (!l->is_barrier)
            continue;
        add_line_head(b, l, &any);
        hed_buf_addf(b, ",\"split\":%s,\"live\":%u}", l->is_split ? "true" : "false", l->live);
    }
    any = false;
    hed_buf_addf(b, "],\"parts\":[");
    for (uint32_t i = 0; i < e->nlines; i++) {
        if (e->lines[i].parts)
            hed_buf_addf(b, "%s%u", any ? "," : "", e->lines[i].line);
        any = any || e->lines[i].parts;
    }
    hed_buf_addf(b, "]");
}

static void
add_lines(struct hed_buf *b, const struct hed_explain *e)
{
    static const char *const ways[] = {
        [HED_ONCE] = "once", [HED_PER_ROW] = "row", [HED_PER_LANE] = "lanes"};
    static const char *const accesses[] = {
        [HED_ACCESS_NONE] = "",           [HED_ACCESS_ONE] = "one",
        [HED_ACCESS_ROW] = "row",         [HED_ACCESS_STEPS] = "steps",
        [HED_ACCESS_OFFSETS] = "offsets", [HED_ACCESS_ANYWHERE] = "anywhere"};
    static const char *const kinds[] = {[HED_UNKNOWN] = "varies",
                                        [HED_UNIFORM] = "uniform",
                                        [HED_ROWS] = "row",
                                        [HED_VARIES] = "varies"};
    bool any = false;

    hed_buf_addf(b, ",\"lines\":[");
    for (uint32_t i = 0; i < e->nlines; i++) {
        const struct hed_explain_line *l = &e->lines[i];

        add_line_head(b, l, &any);
        hed_buf_addf(b, ",\"how\":\"%s\"",
                     l->loop != HED_FLOW_NONE && e->loops[l->loop].is_solo ? "alone"
                                                                           : ways[l->way]);
        if (l->value)
            hed_buf_addf(b, ",\"value\":\"%s\",\"step\":%" PRId64, kinds[l->value->kind],
                         l->value->step);
        if (l->access)
            hed_buf_addf(b, ",\"access\":\"%s\"", accesses[l->access]);
        hed_buf_addf(b, "}");
    }
    hed_buf_addf(b, "]");
}

static void
add_passes(struct hed_buf *b, const struct hed_cpu_made *m)
{
    hed_buf_addf(b, ",\"passes\":[");
    for (unsigned i = 0; i < m->npasses; i++) {
        const struct hed_cpu_pass *p = &m->passes[i];

        hed_buf_addf(b, "%s{", i ? "," : "");
        add_text(b, "shape", hed_cpu_shape_word(p->made));
        hed_buf_addf(b, ",");
        add_text(b, "name", p->name);
        hed_buf_addf(b, ",\"depth\":%u,\"ns\":%" PRIu64 ",\"refused\":%s,", p->depth, p->ns,
                     p->err ? "true" : "false");
        add_text(b, "did", p->did);
        hed_buf_addf(b, "}");
    }
    hed_buf_addf(b, "]");
}

void
hed_cpu_print_json(const struct hed_cpu_subject *s, const struct hed_cpu_asked *asked)
{
    char name[HED_DEMANGLED_MAX];
    struct hed_buf b;

    hed_buf_init(&b, LINE_MAX_BYTES);
    hed_buf_addf(&b, "{");
    add_text(&b, "kernel", s->name);
    hed_buf_addf(&b, ",");
    add_text(&b, "name", hed_demangle(s->name, name, sizeof name));
    hed_buf_addf(&b, ",");
    add_text(&b, "source", s->source);
    hed_buf_addf(&b, ",\"image\":%" PRIu64 ",", s->image);
    if (s->func)
        hed_buf_addf(&b, "\"line\":%u,\"instructions\":%u,", s->func->line, s->func->ninsts);
    add_text(&b, "rows", rows_word(s->rows));
    add_state(&b, s);
    if (s->explained.nlines) {
        add_counts(&b, &s->explained);
        add_findings(&b, &s->explained);
    }
    if (asked->lines && s->explained.nlines)
        add_lines(&b, &s->explained);
    if (asked->passes)
        add_passes(&b, &s->made);
    hed_buf_addf(&b, "}");
    puts(hed_buf_cstr(&b));
    hed_buf_fini(&b);
}
