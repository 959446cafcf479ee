/* The result of the passes as text. See show.h.
 *
 *      block 3 <- 1 2, dominator 1, after 5, loop 0: partial, joins
 *          %r4.2 = phi(%r4.1, %r4.3)                       rows, step 4
 *          add.s32 %r5.1, %r4.2, 1;                        rows, step 4
 */
#include "kernel/ptx/pass/show.h"

#include "base/buf.h"
#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/uniform.h"
#include "kernel/ptx/text/print.h"

#define COLUMN 64
#define OFFSETS_SHOWN 9

static void
show_number(struct hed_buf *out, const char *name, uint32_t n)
{
    if (n != HED_FLOW_NONE)
        hed_buf_addf(out, "%s%u", name, n);
}

/* The first lanes' offsets tell most of it. */
static void
show_offsets(struct hed_buf *out, const struct hed_offsets *o)
{
    hed_buf_addf(out, "offsets");
    for (unsigned i = 0; i < OFFSETS_SHOWN; i++)
        hed_buf_addf(out, " %d", o->lanes[i]);
    hed_buf_addf(out, " ...");
}

static void
show_class(struct hed_buf *out, const struct hed_uniform *c)
{
    if (c->kind == HED_UNIFORM && c->is_constant)
        hed_buf_addf(out, "constant %lld", (long long)c->constant);
    else if (c->kind == HED_UNIFORM)
        hed_buf_addf(out, "uniform");
    else if (c->kind == HED_ROWS)
        hed_buf_addf(out, "rows, step %lld%s", (long long)c->step,
                     c->wraps == HED_FLOW_NONE ? "" : ", may wrap around");
    else if (c->kind == HED_OFFSETS)
        show_offsets(out, c->offsets);
    else
        hed_buf_addf(out, "varies");
}

struct showing {
    const struct hed_uniforms *u;
    struct hed_buf *out;
    size_t line; /* where the line began */
    bool first;
};

static void
show_result(void *arg, const struct hed_ptx_reg **reg)
{
    struct showing *s = arg;

    if (!s->u || !s->first)
        return;
    s->first = false;
    while (s->out->size < s->line + COLUMN && s->out->err == 0)
        hed_buf_addf(s->out, " ");
    hed_buf_addf(s->out, "  ");
    show_class(s->out, &s->u->values[(*reg)->id]);
}

static void
show_inst(const struct hed_uniforms *u, struct hed_ptx_inst *i, struct hed_buf *out)
{
    struct showing s = {.u = u, .out = out, .line = out->size, .first = true};

    hed_buf_addf(out, "    ");
    hed_ptx_print_inst(i, out);
    hed_flow_each_write(i, show_result, &s);
    hed_buf_addf(out, "\n");
}

static void
show_phi(const struct hed_flow_block *b, const struct hed_flow_phi *p, const struct hed_uniforms *u,
         struct hed_buf *out)
{
    struct showing s = {.u = u, .out = out, .line = out->size, .first = true};
    const struct hed_ptx_reg *to = p->to;

    hed_buf_addf(out, "    ");
    hed_buf_addf(out, "%s", p->to->name);
    hed_buf_addf(out, " = phi(");
    for (uint32_t k = 0; k < b->nbefore; k++) {
        hed_buf_addf(out, "%s", k ? ", " : "");
        hed_buf_addf(out, "%s", p->from[k] ? p->from[k]->name : "0");
    }
    hed_buf_addf(out, ")");
    show_result(&s, &to);
    hed_buf_addf(out, "\n");
}

static void
show_block_head(const struct hed_flow *f, uint32_t b, const struct hed_uniforms *u,
                struct hed_buf *out)
{
    const struct hed_flow_block *block = &f->blocks[b];

    show_number(out, "block ", b);
    hed_buf_addf(out, "%s", block->nbefore ? " <-" : "");
    for (uint32_t k = 0; k < block->nbefore; k++)
        show_number(out, " ", block->before[k]);
    show_number(out, ", dominator ", block->dominator);
    show_number(out, ", after ", block->after);
    show_number(out, ", loop ", block->loop);
    if (u) {
        hed_buf_addf(out, "%s", u->partial[b] ? ", partial" : "");
        hed_buf_addf(out, "%s", u->joins[b] ? ", joins" : "");
        hed_buf_addf(out, "%s", u->parts[b] ? ", parts" : "");
    }
    hed_buf_addf(out, "\n");
}

void
hed_flow_show(const struct hed_flow *f, const struct hed_uniforms *u, struct hed_buf *out)
{
    static const char *const ends[] = {"goes", "branches", "leaves", "leaves if", "leaves unless"};

    for (uint32_t b = 0; b < f->nblocks; b++) {
        const struct hed_flow_block *block = &f->blocks[b];

        show_block_head(f, b, u, out);
        for (const struct hed_flow_phi *p = block->phis; p; p = p->next)
            show_phi(block, p, u, out);
        for (uint32_t i = 0; i < block->ninsts; i++)
            show_inst(u, block->insts[i], out);
        if (block->last)
            show_inst(u, (struct hed_ptx_inst *)block->last, out);
        hed_buf_addf(out, "    ");
        hed_buf_addf(out, "%s", ends[block->end]);
        for (uint32_t k = 0; k < block->nnext; k++)
            show_number(out, " ", block->next[k]);
        hed_buf_addf(out, "\n");
    }
}
