/* A kernel as a page of text, 100 columns wide, or as a line of a table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/cpu/cpu.h"
#include "kernel/ptx.h"

#define TEXT_MAX 240
#define TEXT_WIDTH 46 /* columns for an instruction */

/* ---- words ----------------------------------------------------------------------------------- */

const char *
hed_cpu_inst_text(const struct hed_ptx_inst *i, char *out, size_t size)
{
    struct hed_buf text;
    bool in_register = false;
    size_t n = 0;

    hed_buf_init(&text, 1 << 20);
    hed_ptx_print_inst(i, &text);
    /* %r4.2 is a value of %r4; %tid.x stays. */
    for (const char *p = hed_buf_cstr(&text); *p && n + 1 < size; p++) {
        if (in_register && *p == '.' && p[1] >= '0' && p[1] <= '9') {
            while (p[1] >= '0' && p[1] <= '9')
                p++;
            in_register = false;
            continue;
        }
        in_register = *p == '%' || (in_register && *p != ',' && *p != ' ' && *p != ';' &&
                                    *p != ']' && *p != '}' && *p != '+');
        out[n++] = *p;
    }
    out[n] = 0;
    hed_buf_fini(&text);
    return out;
}

const char *
hed_cpu_tier_text(const struct hed_board_kernel *k)
{
    const uint32_t tier = k->tier;

    switch (tier) {
    case HED_BOARD_BASELINE:
        return "baseline";
    case HED_BOARD_QUEUED:
        return "queued";
    case HED_BOARD_COMPILED:
        return "compiled";
    default:
        return "stays";
    }
}

const char *
hed_cpu_shape_word(uint32_t made)
{
    switch (made) {
    case HED_PTX_MADE_MASKS:
        return "masks";
    case HED_PTX_MADE_MACHINE:
        return "machine";
    default:
        return "unknown";
    }
}

static const char *
rows_text(enum hed_rows rows)
{
    switch (rows) {
    case HED_ROWS_FLAT:
        return "rows of 32: blocks of one dimension";
    case HED_ROWS_32:
        return "rows of 32: blocks whose width is a multiple of 32";
    case HED_ROWS_16:
        return "two rows of 16: blocks that are 16 wide";
    case HED_ROWS_8:
        return "four rows of 8: blocks that are 8 wide";
    case HED_ROWS_ONE:
        return "one: blocks of one thread, which run as scalar code";
    default:
        return "any: nothing is known of the block's width";
    }
}

static const char *
class_text(const struct hed_uniform *c, char *out, size_t size)
{
    if (c->kind == HED_UNIFORM && c->is_constant)
        snprintf(out, size, "%" PRId64, (int64_t)c->constant);
    else if (c->kind == HED_UNIFORM)
        snprintf(out, size, "same in all lanes");
    else if (c->kind == HED_ROWS)
        snprintf(out, size, "+%" PRId64 " per lane%s", c->step,
                 c->wraps == HED_FLOW_NONE ? "" : ", may wrap");
    else if (c->kind == HED_OFFSETS)
        snprintf(out, size, "known difference per lane");
    else
        snprintf(out, size, "varies");
    return out;
}

static const char *
access_text(const struct hed_explain_line *l, char *out, size_t size)
{
    switch (l->access) {
    case HED_ACCESS_ONE:
        snprintf(out, size, "one address");
        break;
    case HED_ACCESS_ROW:
        snprintf(out, size, "row of %u bytes each", l->bytes);
        break;
    case HED_ACCESS_STEPS:
        snprintf(out, size, "steps of %" PRId64 " bytes", l->step);
        break;
    case HED_ACCESS_OFFSETS:
        snprintf(out, size, "known distances");
        break;
    case HED_ACCESS_ANYWHERE:
        snprintf(out, size, "%s",
                 l->inst->form->op == HED_PTX_OP_LD   ? "gather"
                 : l->inst->form->op == HED_PTX_OP_ST ? "scatter"
                                                      : "one by one");
        break;
    default:
        out[0] = 0;
    }
    return out;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void
print_field(const char *name, const char *text)
{
    printf("  %-10s ", name);
    hed_cli_fold(stdout, text, 13);
}

static void
print_tier(const struct hed_cpu_subject *s)
{
    const struct hed_board_kernel *k = s->shown;
    static const char *const texts[] = {
        [HED_BOARD_BASELINE] = "baseline: not hot yet",
        [HED_BOARD_QUEUED] = "baseline: hot, being compiled",
        [HED_BOARD_COMPILED] = "compiled",
        [HED_BOARD_STAYS] = "baseline: it cannot be compiled for warps",
    };
    const uint32_t tier = k->tier;
    char text[TEXT_MAX];

    snprintf(text, sizeof text, "%s; %" PRIu64 " launches; %.1f ms in the baseline tier",
             texts[tier <= HED_BOARD_STAYS ? tier : HED_BOARD_STAYS], (uint64_t)k->launches,
             (double)k->baseline_ns / 1e6);
    print_field("tier", text);
}

static void
print_shape(const struct hed_cpu_subject *s)
{
    const struct hed_cpu_made *m = &s->made;
    char text[sizeof m->why.text + TEXT_MAX];

    if (!m->is_known && m->why.text[0]) {
        snprintf(text, sizeof text, "not compiled: %s", m->why.text);
    } else if (!m->is_known) {
        snprintf(text, sizeof text, "%s%s",
                 s->explained.is_baseline_only ? "not compiled: "
                 : s->explained.why            ? "warps with a machine of lanes: "
                                               : "warps under masks",
                 s->explained.why ? s->explained.why : "");
    } else {
        static const char *const shapes[] = {
            [HED_PTX_MADE_UNKNOWN] = "unknown",
            [HED_PTX_MADE_MACHINE] = "warps with a machine of lanes",
            [HED_PTX_MADE_MASKS] = "warps under masks",
        };
        const uint32_t made = m->info.made <= HED_PTX_MADE_MASKS ? m->info.made : 0;
        char cut[64] = "";

        if (m->info.flags & HED_PTX_CUT)
            snprintf(cut, sizeof cut, ", cut at barriers: %u bytes kept per warp", m->info.frame);
        else if (m->info.flags & HED_PTX_WAITS)
            snprintf(cut, sizeof cut, ", with a stack for each warp");
        snprintf(text, sizeof text, "%s%s%s%s", shapes[made], cut, m->why.text[0] ? "; " : "",
                 m->why.text);
    }
    print_field("shape", text);
    if (!m->is_known)
        return;
    snprintf(text, sizeof text, "%.0f ms%s", m->us / 1e3,
             m->is_cached ? ", now from the cache" : "");
    if (m->bytes)
        snprintf(text, sizeof text, "%.0f ms, %.1f KiB of code", m->us / 1e3,
                 (double)m->bytes / 1024);
    print_field("compiling", text);
}

static void
print_partings(const struct hed_explain *e)
{
    struct hed_buf b;

    if (!e->partings)
        return;
    hed_buf_init(&b, 1 << 20);
    hed_buf_addf(&b, "%u; lanes may part at lines", e->partings);
    for (uint32_t i = 0; i < e->nlines; i++)
        if (e->lines[i].parts)
            hed_buf_addf(&b, " %u", e->lines[i].line);
    print_field("branches", hed_buf_cstr(&b));
    hed_buf_fini(&b);
}

static void
print_summary(const struct hed_cpu_subject *s)
{
    const struct hed_explain *e = &s->explained;
    char text[TEXT_MAX];

    print_field("threads", rows_text(s->rows));
    if (e->nlines == 0)
        return;
    snprintf(text, sizeof text, "%u once per warp, %u once per row, %u for 32 lanes",
             e->ways[HED_ONCE], e->ways[HED_PER_ROW], e->ways[HED_PER_LANE]);
    print_field("computes", text);
    snprintf(text, sizeof text,
             "%u one address, %u rows, %u steps, %u known distances, %u gathers or scatters",
             e->accesses[HED_ACCESS_ONE], e->accesses[HED_ACCESS_ROW],
             e->accesses[HED_ACCESS_STEPS], e->accesses[HED_ACCESS_OFFSETS],
             e->accesses[HED_ACCESS_ANYWHERE]);
    print_field("accesses", text);
    print_partings(e);
}

static void
print_cost(const char *where, const struct hed_explain_cost *c, const char *note)
{
    printf("  %-22s %7u %7u %7u %7u%s%s\n", where, c->numbers, c->vectors, c->singles, c->slow,
           note[0] ? "  " : "", note);
}

/* Estimates: what a warp takes outside of loops, and in one round of each loop. */
static void
print_costs(const struct hed_explain *e)
{
    printf("\n%-24s  scalar  vector  single    slow\n", "Operations per warp");
    print_cost("outside of loops", &e->cost, "");
    for (uint32_t i = 0; i < e->nloops; i++) {
        const struct hed_explain_loop *l = &e->loops[i];
        char where[40];

        snprintf(where, sizeof where, "lines %u to %u", l->first, l->last);
        print_cost(where, &l->cost,
                   l->is_solo         ? "for each lane by itself"
                   : l->leaves_singly ? "lanes leave it one by one"
                                      : "");
    }
}

/* One finding: the line, the instruction, and what there is to say of it. */
static void
print_finding(const struct hed_explain_line *l, const char *what)
{
    char text[TEXT_MAX];

    hed_cpu_inst_text(l->inst, text, sizeof text);
    printf("  %6u  ", l->line);
    hed_cli_put(stdout, text);
    printf("%*s  %s\n", strlen(text) < TEXT_WIDTH ? (int)(TEXT_WIDTH - strlen(text)) : 0, "", what);
}

static void
print_gathers(const struct hed_explain *e)
{
    if (e->accesses[HED_ACCESS_ANYWHERE])
        printf("\nGathers and scatters (each lane has an address of its own), and why\n");
    for (uint32_t i = 0; i < e->nlines; i++) {
        const struct hed_explain_line *l = &e->lines[i];
        char what[TEXT_MAX];

        if (l->access != HED_ACCESS_ANYWHERE)
            continue;
        snprintf(what, sizeof what, "%s", l->cause);
        if (l->cause_line)
            snprintf(what, sizeof what, "%s (line %u)", l->cause, l->cause_line);
        print_finding(l, what);
    }
}

static void
print_barriers(const struct hed_explain *e)
{
    if (e->barriers)
        printf("\nBarriers\n");
    for (uint32_t i = 0; i < e->nlines; i++) {
        const struct hed_explain_line *l = &e->lines[i];
        char what[TEXT_MAX];

        if (!l->is_barrier)
            continue;
        snprintf(what, sizeof what, "%u values are needed behind it", l->live);
        print_finding(l, l->is_split ? "no cut: some lanes of a warp do not reach it" : what);
    }
}

static void
print_lines(const struct hed_explain *e)
{
    static const char *const ways[] = {
        [HED_ONCE] = "once", [HED_PER_ROW] = "row", [HED_PER_LANE] = "lanes"};

    printf("\nInstructions, in the order in which a warp runs them\n"
           "    line  how    %-46s  value\n",
           "instruction");
    for (uint32_t i = 0; i < e->nlines; i++) {
        const struct hed_explain_line *l = &e->lines[i];
        char text[TEXT_MAX], how[64] = "", access[64];

        const bool is_solo = l->loop != HED_FLOW_NONE && e->loops[l->loop].is_solo;

        printf("  %6u  %-5s  ", l->line, is_solo ? "alone" : ways[l->way]);
        hed_cpu_inst_text(l->inst, text, sizeof text);
        hed_cli_put(stdout, text);
        if (l->value)
            class_text(l->value, how, sizeof how);
        access_text(l, access, sizeof access);
        printf("%*s  %s%s%s\n", strlen(text) < TEXT_WIDTH ? (int)(TEXT_WIDTH - strlen(text)) : 0,
               "", how, how[0] && access[0] ? "; " : "", access);
    }
}

/* The parts of a pass come before it, indented. */
static void
print_passes(const struct hed_cpu_made *m)
{
    for (unsigned i = 0; i < m->npasses; i++) {
        const struct hed_cpu_pass *p = &m->passes[i];

        if (i == 0 || p->made != m->passes[i - 1].made)
            printf("\npasses: %s\n", hed_cpu_shape_word(p->made));
        printf("  %*s%-*s %9.3f ms  %s", 2 * (int)p->depth, "", 11 - 2 * (int)p->depth, p->name,
               (double)p->ns / 1e6, p->does);
        if (p->err)
            printf(": refused");
        else if (p->did[0])
            printf(": %s", p->did);
        putchar('\n');
    }
}

void
hed_cpu_print_page(const struct hed_cpu_subject *s, const struct hed_cpu_asked *asked)
{
    const struct hed_explain *e = &s->explained;
    char name[HED_DEMANGLED_MAX], where[TEXT_MAX];

    hed_cli_put(stdout, hed_demangle(s->func->name, name, sizeof name));
    snprintf(where, sizeof where, "%.80s, image %" PRIu64 ", line %u; %u instructions%s", s->source,
             s->image, s->func->line, s->func->ninsts,
             s->is_lifted ? " of PTX made from machine code" : "");
    putchar('\n');
    print_field("from", where);
    if (s->shown)
        print_tier(s);
    print_shape(s);
    print_summary(s);
    if (e->nlines)
        print_costs(e);
    print_gathers(e);
    print_barriers(e);
    if (asked->lines && e->nlines)
        print_lines(e);
    if (asked->passes)
        print_passes(&s->made);
}

/* ---- the table ------------------------------------------------------------------------------- */

void
hed_cpu_print_head(void)
{
    printf(
        "instr.  shape    tier      launches  baseline   compile  rows  steps  gathers  barriers  "
        "kernel\n");
}

static const char *
shape_in_row(const struct hed_cpu_subject *s)
{
    if (s->made.is_known)
        return hed_cpu_shape_word(s->made.info.made);
    if (!s->func || s->explained.is_baseline_only)
        return "-";
    return s->explained.why ? "machine" : "masks";
}

void
hed_cpu_print_row(const struct hed_cpu_subject *s)
{
    const struct hed_explain *e = &s->explained;
    char name[HED_DEMANGLED_MAX], launches[24] = "-", baseline[24] = "-", compile[24] = "-";

    if (s->shown) {
        snprintf(launches, sizeof launches, "%" PRIu64, (uint64_t)s->shown->launches);
        snprintf(baseline, sizeof baseline, "%.0f ms", (double)s->shown->baseline_ns / 1e6);
    }
    if (s->made.is_known)
        snprintf(compile, sizeof compile, "%.0f ms", s->made.us / 1e3);
    if (s->func)
        printf("%6u", s->func->ninsts);
    else
        printf("%6s", "-");
    printf("  %-7s  %-8s  %8s  %8s  %8s  ", shape_in_row(s),
           s->shown ? hed_cpu_tier_text(s->shown) : "-", launches, baseline, compile);
    if (s->func)
        printf("%4u  %5u  %7u  %8u  ", e->accesses[HED_ACCESS_ROW],
               e->accesses[HED_ACCESS_STEPS] + e->accesses[HED_ACCESS_OFFSETS],
               e->accesses[HED_ACCESS_ANYWHERE], e->barriers);
    else
        printf("%4s  %5s  %7s  %8s  ", "-", "-", "-", "-");
    hed_cli_put(stdout, hed_demangle(s->name, name, sizeof name));
    putchar('\n');
}
