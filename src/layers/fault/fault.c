/* The fault layer: makes the n-th call of a name fail with a given error, to test the layers above
 * it and programs: what does my code do when the third allocation fails?
 *
 *     HEDDLE_FAULT=cuMemAlloc:3:CUDA_ERROR_OUT_OF_MEMORY,cuLaunchKernel:*:700
 *
 * core/fault.h describes the rules. A call that fails this way does not reach the layer below. The
 * program can add rules while it runs, and remove those (heddle.h); they count calls from then on.
 *
 * Invariants:
 * 1. `used` is the number of rules that are in use. While it is 0, no call takes the lock.
 * 2. All rules that one call of the program has added have its id; those of the setting have 0.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/lock.h"
#include "core/config.h"
#include "core/fault.h"
#include "core/layer.h"
#include "core/stats.h"

struct fault_slot {
    struct hed_fault_rule rule;
    bool is_used;
    int id;
    uint64_t seen;   /* calls */
    uint64_t failed; /* because of this rule */
};

struct fault {
    _Atomic unsigned used;
    struct hed_lock lock; /* guards the rest */
    int next_id;
    struct fault_slot slots[HED_FAULT_RULES];
};

static int32_t
planned_result_locked(struct fault *f, enum hed_api api, uint32_t call)
{
    int32_t result = 0;

    for (size_t i = 0; i < HED_FAULT_RULES; i++) {
        struct fault_slot *s = &f->slots[i];

        if (!s->is_used || !hed_fault_is_about(&s->rule, api, call))
            continue;
        s->seen++;
        if (!result && s->seen >= s->rule.first && s->seen <= s->rule.last) {
            result = s->rule.result;
            s->failed++;
        }
    }
    return result;
}

/* The result to fail a call with, or 0. */
static int32_t
planned_result(struct fault *f, enum hed_api api, uint32_t call)
{
    /* Relaxed: a rule is for the calls of threads that know of it. */
    if (atomic_load_explicit(&f->used, memory_order_relaxed) == 0)
        return 0;
    hed_lock_brief(&f->lock);

    const int32_t result = planned_result_locked(f, api, call);

    hed_unlock_brief(&f->lock);
    if (result)
        hed_stats_add(&hed_stats.faults_injected, 1);
    return result;
}

static CUresult
fault_cuda_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    const int32_t result = planned_result(self->state, HED_API_CUDA, id);

    return result ? (CUresult)result : hed_cuda_invoke(self->next, id, args);
}

static nvmlReturn_t
fault_nvml_any(struct hed_layer *self, enum hed_nvml_call id, void *args)
{
    const int32_t result = planned_result(self->state, HED_API_NVML, id);

    return result ? (nvmlReturn_t)result : hed_nvml_invoke(self->next, id, args);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static int
add_rules_locked(struct fault *f, const struct hed_fault_rule *rules, size_t count, int id)
{
    const unsigned used = atomic_load_explicit(&f->used, memory_order_relaxed);

    if (count > HED_FAULT_RULES - used)
        return HED_ELIMIT;
    for (size_t i = 0, at = 0; i < count; at++) {
        if (!f->slots[at].is_used)
            f->slots[at] = (struct fault_slot){.rule = rules[i++], .is_used = true, .id = id};
    }
    atomic_store_explicit(&f->used, used + (unsigned)count, memory_order_relaxed);
    return 0;
}

static int
add_rules(struct fault *f, struct hed_control *c, struct hed_why *why)
{
    struct hed_fault_rule *rules = calloc(HED_FAULT_RULES, sizeof *rules);
    size_t count = 0;
    int err = rules ? hed_fault_parse(c->text, rules, &count, why) : HED_ENOMEM;

    if (!rules)
        hed_why_set(why, "fault: %s", hed_err_text(HED_ENOMEM));
    if (!err && count == 0) {
        hed_why_set(why, "fault: no rule is given");
        err = HED_EINVAL;
    }
    if (!err) {
        hed_lock(&f->lock);

        const int id = f->next_id < INT32_MAX ? f->next_id + 1 : 1;

        err = add_rules_locked(f, rules, count, id);
        f->next_id = err ? f->next_id : id;
        hed_unlock(&f->lock);
        if (err)
            hed_why_set(why, "fault: more than %d rules", HED_FAULT_RULES);
        else
            c->id = id;
    }
    free(rules);
    return err;
}

/* Counts the calls that the rules of an id have failed, and removes those rules if asked to. */
static int
find_rules(struct fault *f, struct hed_control *c, bool remove, struct hed_why *why)
{
    bool found = false;

    c->count = 0;
    hed_lock(&f->lock);
    for (size_t i = 0; i < HED_FAULT_RULES; i++) {
        struct fault_slot *s = &f->slots[i];

        if (!s->is_used || s->id != c->id || c->id <= 0)
            continue;
        found = true;
        c->count += s->failed;
        s->is_used = !remove;
        if (remove)
            atomic_fetch_sub_explicit(&f->used, 1, memory_order_relaxed);
    }
    hed_unlock(&f->lock);
    if (!found)
        hed_why_set(why, "fault: there are no rules with the number %d any more", c->id);
    return found ? 0 : HED_ENOTFOUND;
}

static int
fault_control(struct hed_layer *self, struct hed_control *c, struct hed_why *why)
{
    switch (c->what) {
    case HED_CONTROL_FAULT_ADD:
        return add_rules(self->state, c, why);
    case HED_CONTROL_FAULT_REMOVE:
        return find_rules(self->state, c, true, why);
    case HED_CONTROL_FAULT_COUNT:
        return find_rules(self->state, c, false, why);
    default:
        return HED_ENOTSUP;
    }
}

static int
fault_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct hed_fault_rule *rules = calloc(HED_FAULT_RULES, sizeof *rules);
    struct fault *f = calloc(1, sizeof *f);
    size_t count = 0;
    const int err = rules && f ? hed_fault_parse(config->fault, rules, &count, why) : HED_ENOMEM;

    if (!err) {
        hed_lock_init(&f->lock, HED_RANK_FAULTS);
        (void)add_rules_locked(f, rules, count, 0); /* all of them fit */
        self->state = f;
    } else {
        free(f);
    }
    free(rules);
    return err;
}

const struct hed_layer_type hed_fault_layer = {
    .name = "fault",
    .cuda_any = fault_cuda_any,
    .nvml_any = fault_nvml_any,
    .init = fault_init,
    .control = fault_control,
};
