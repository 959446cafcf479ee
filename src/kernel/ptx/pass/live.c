/* Liveness of values, from the end of the function to its beginning. See live.h. */
#include "kernel/ptx/pass/live.h"

#include <string.h>

#include "base/err.h"

static void
add_value(void *arg, const struct hed_ptx_reg **reg)
{
    ((uint64_t *)arg)[(*reg)->id / 64] |= UINT64_C(1) << ((*reg)->id % 64);
}

static void
drop_value(void *arg, const struct hed_ptx_reg **reg)
{
    ((uint64_t *)arg)[(*reg)->id / 64] &= ~(UINT64_C(1) << ((*reg)->id % 64));
}

struct write {
    const struct hed_ssa *ssa;
    uint64_t *set;
};

/* A guarded instruction also reads what it may leave as it was. */
static void
pass_write(void *arg, const struct hed_ptx_reg **reg)
{
    const struct write *w = arg;
    const struct hed_ptx_reg *old = w->ssa->values[(*reg)->id].old;

    drop_value(w->set, reg);
    if (old)
        add_value(w->set, &old);
}

static void
pass_inst(const struct hed_live *live, struct hed_ptx_inst *i, uint64_t *set)
{
    struct write w = {live->ssa, set};

    hed_flow_each_write(i, pass_write, &w);
    hed_flow_each_read(i, add_value, set);
}

static void
pass_block_end(const struct hed_live *live, uint32_t b, uint64_t *set)
{
    const struct hed_flow_block *block = &live->f->blocks[b];

    memcpy(set, live->out + (size_t)b * live->words, live->words * sizeof(*set));
    if (block->last && block->last->guard)
        hed_flow_each_read((struct hed_ptx_inst *)block->last, add_value, set);
}

void
hed_live_behind(const struct hed_live *live, uint32_t b, uint32_t i, uint64_t *set)
{
    const struct hed_flow_block *block = &live->f->blocks[b];

    pass_block_end(live, b, set);
    for (uint32_t k = block->ninsts; k-- > i + 1;)
        pass_inst(live, block->insts[k], set);
}

static void
gather_out(struct hed_live *live, uint32_t b)
{
    const struct hed_flow_block *block = &live->f->blocks[b];
    uint64_t *out = live->out + (size_t)b * live->words;

    for (uint32_t k = 0; k < block->nnext; k++) {
        const struct hed_flow_block *to = &live->f->blocks[block->next[k]];
        const uint64_t *in = live->in + (size_t)block->next[k] * live->words;

        for (uint32_t w = 0; w < live->words; w++)
            out[w] |= in[w];
        for (const struct hed_flow_phi *p = to->phis; p; p = p->next)
            for (uint32_t i = 0; i < to->nbefore; i++)
                if (to->before[i] == b && p->from[i])
                    add_value(out, &p->from[i]);
    }
}

int
hed_live_init(struct hed_live *live, struct hed_flow *f, const struct hed_ssa *ssa)
{
    const size_t words = f->nvalues / 64 + 1;
    uint64_t *set = hed_flow_alloc(f, words, sizeof(*set));
    bool changed = true;

    *live = (struct hed_live){.f = f, .ssa = ssa, .words = (uint32_t)words};
    live->in = hed_flow_alloc(f, words * f->nblocks, sizeof(*live->in));
    live->out = hed_flow_alloc(f, words * f->nblocks, sizeof(*live->out));
    if (!set || !live->in || !live->out)
        return HED_ENOMEM;
    while (changed) {
        changed = false;
        for (uint32_t b = f->nblocks; b-- > 0;) {
            const struct hed_flow_block *block = &f->blocks[b];
            uint64_t *in = live->in + b * words;

            gather_out(live, b);
            pass_block_end(live, b, set);
            for (uint32_t k = block->ninsts; k-- > 0;)
                pass_inst(live, block->insts[k], set);
            for (const struct hed_flow_phi *p = block->phis; p; p = p->next) {
                const struct hed_ptx_reg *to = p->to;

                drop_value(set, &to);
            }
            changed |= memcmp(in, set, words * sizeof(*set)) != 0;
            memcpy(in, set, words * sizeof(*set));
        }
    }
    return 0;
}
