/* Before and after every call that we want to see. ENTER and EXIT come in the program's thread.
 * ENTER leaves what EXIT needs in a frame of that thread. */
#include <string.h>

#include "core/session.h"
#include "see/inject/inject.h"
#include "see/inject/launch.h"
#include "see/trace/call.h"
#include "see/trace/write.h"
#include "share/share.h"

#define FRAMES 4 /* calls inside calls; of deeper ones the outermost is given up */

/* What happens to a call in record mode. */
enum fate {
    FATE_NONE,  /* the recorder was not asked */
    FATE_MADE,  /* hed_recorder_after() must follow */
    FATE_TRIED, /* the same, but it was voided to see whether that works, and has yet to be made */
    FATE_TAKEN, /* it is made later: this one was voided */
    FATE_ERROR, /* the program gets the error of earlier work */
};

struct frame {
    uint32_t correlation;
    uintptr_t stack; /* of the callback at ENTER: a call inside this one is at a lower address */
    enum hed_cuda_call id;
    enum fate fate;
    bool gated;
    bool traced;
    bool voided;
    CUresult answer;
    uint64_t start;
    void *params;             /* the driver's */
    struct hed_gate *hurried; /* where the thread counts as waiting for the GPU; NULL */
    struct hed_record_call recorded;
    struct hed_inject_void empty;
    struct hed_trace_early early;
    _Alignas(16) unsigned char memo[HED_LAYER_MEMO];  /* of the layer sched */
    _Alignas(16) unsigned char args[HED_INJECT_ARGS]; /* a copy in the form of heddle's layers */
};

static __thread struct {
    bool inside;      /* a callback of ours is running: the calls that it makes are ignored */
    uintptr_t stack;  /* that callback's */
    uint32_t instead; /* the program's call that our call makes; 0 for none */
    unsigned depth;
    struct frame frames[FRAMES];
} mine;

/* Copies CUPTI's words, and then the word that says which variant it is. */
static void
copy_args(struct frame *f, const struct hed_inject_call *call)
{
    const struct hed_call_info *info = &hed_cuda_info[call->id];
    const size_t n = info->ptds >= 0 ? (size_t)info->ptds : info->size;

    if (f->params)
        memcpy(f->args, f->params, n);
    else
        memset(f->args, 0, n);
    if (info->ptds >= 0)
        memcpy(f->args + info->ptds, &call->ptds, sizeof call->ptds);
}

static void
gate_before(struct frame *f)
{
    hed_inject.sched->type->before(hed_inject.sched, f->id, f->args, f->memo);
}

static void
gate_after(struct frame *f, CUresult made)
{
    hed_inject.sched->type->after(hed_inject.sched, f->id, f->args, f->memo, made);
}

/* Issues what is held first; the thread then counts as waiting, so that nothing new is held. */
static void
drain_held_work(struct frame *f)
{
    hed_recorder_drain_all(hed_inject.record);
    f->hurried = hed_gate_current(hed_inject.sched->state);
    if (f->hurried)
        hed_gate_sync_begin(f->hurried);
}

static void
ask_record(struct frame *f)
{
    CUresult result = CUDA_SUCCESS;

    /* Calls without parameters have none; a launch without any could not be voided. */
    if (!f->params && hed_inject_voids(f->id))
        return;
    if (hed_inject_voids(f->id) && hed_inject_proof(f->id) == HED_INJECT_FAILS) {
        drain_held_work(f);
        return;
    }
    hed_recorder_set_tag(f->traced ? f->correlation : 0);
    switch (hed_recorder_before(hed_inject.record, f->id, f->args, &f->recorded, &result)) {
    case HED_RECORD_MAKE:
        f->fate = FATE_MADE;
        if (!f->recorded.client || !f->recorded.tried || !hed_inject_voids(f->id) ||
            hed_inject_proof(f->id) == HED_INJECT_WORKS)
            return;
        f->fate = FATE_TRIED;
        break;
    case HED_RECORD_TAKEN:
        f->fate = FATE_TAKEN;
        break;
    case HED_RECORD_ANSWER:
        f->fate = FATE_ERROR;
        break;
    }
    f->answer = result;
    /* Only launches can be kept from running. Other calls happen, and the program gets the
     * error. */
    f->voided = hed_inject_voids(f->id);
    if (f->voided)
        hed_inject_void(&f->empty, f->id, f->params);
}

/* A call that never returns: the program has jumped out of it (longjmp, an exception). It must not
 * stay counted anywhere; its arguments are gone. */
static void
abandon_frame(struct frame *f)
{
    if (f->gated)
        gate_after(f, CUDA_ERROR_UNKNOWN);
    if (f->hurried)
        hed_gate_sync_end(f->hurried);
    if (f->fate == FATE_MADE || f->fate == FATE_TRIED)
        (void)hed_recorder_after(hed_inject.record, f->id, f->args, &f->recorded,
                                 CUDA_ERROR_UNKNOWN);
}

/* A frame for a call. Frames that are not above it on the stack are left over. If that cannot be
 * told, as with several stacks, the oldest is dropped when there are too many. */
static struct frame *
new_frame(void)
{
    while (mine.depth && mine.frames[mine.depth - 1].stack <= mine.stack)
        abandon_frame(&mine.frames[--mine.depth]);
    if (mine.depth == FRAMES) {
        abandon_frame(&mine.frames[0]);
        memmove(&mine.frames[0], &mine.frames[1], (FRAMES - 1) * sizeof mine.frames[0]);
        mine.depth--;
    }
    return &mine.frames[mine.depth++];
}

static void
enter_call(const struct hed_cupti_call *c, const struct hed_inject_call *call)
{
    struct frame *f = new_frame();

    f->correlation = c->correlation;
    f->stack = mine.stack;
    f->id = call->id;
    f->params = c->params;
    f->fate = FATE_NONE;
    f->gated = f->voided = false;
    f->hurried = NULL;
    f->traced = (call->wants & HED_INJECT_TRACE) && hed_session_recording();
    copy_args(f, call);
    if (f->traced && hed_cuda_info[f->id].flags & HED_CALL_INOUT)
        hed_trace_early_cuda(&f->early, f->id, f->args);
    f->start = f->traced ? hed_trace_ticks(hed_inject.writer) : 0;
    if (call->wants & HED_INJECT_DRAIN)
        drain_held_work(f);
    else if (call->wants & HED_INJECT_RECORD)
        ask_record(f);
    f->gated = (call->wants & HED_INJECT_GATE) && !f->voided;
    if (f->gated)
        gate_before(f);
}

/* Makes the call that was voided for a trial. If the driver ran it nevertheless, it does not read
 * its arguments again after ENTER, and nothing can be held. Then the recorder must not learn of the
 * call, so that it never takes one like it. */
static CUresult
make_voided_call(struct frame *f, CUresult made)
{
    if (made == CUDA_SUCCESS) {
        f->recorded.tried = false;
        hed_inject_prove(f->id, HED_INJECT_FAILS);
    }
    if (!hed_inject_is_refusal(made))
        return made;
    mine.instead = f->correlation;
    made = hed_cuda_invoke(hed_inject.sched, f->id, f->args);
    mine.instead = 0;
    /* It may have been refused for another reason. */
    if (made == CUDA_SUCCESS)
        hed_inject_prove(f->id, HED_INJECT_WORKS);
    return made;
}

/* The program's answer. The driver's own answer counts if it is about something else than the empty
 * grid: a sticky error, code that cannot be loaded. */
static CUresult
answer_program(struct frame *f, CUresult made)
{
    switch (f->fate) {
    case FATE_MADE:
        return hed_recorder_after(hed_inject.record, f->id, f->args, &f->recorded, made);
    case FATE_TRIED:
        return hed_recorder_after(hed_inject.record, f->id, f->args, &f->recorded,
                                  make_voided_call(f, made));
    case FATE_TAKEN:
        return made == CUDA_SUCCESS || hed_inject_is_refusal(made) ? f->answer : made;
    case FATE_ERROR:
        return f->answer;
    default:
        return made;
    }
}

static void
leave_call(const struct hed_cupti_call *c, struct frame *f)
{
    const CUresult made = *(const CUresult *)c->returns;

    if (f->voided)
        hed_inject_put_back(&f->empty, f->id, f->params);
    if (f->gated)
        gate_after(f, made);
    if (f->hurried)
        hed_gate_sync_end(f->hurried);

    const CUresult result = answer_program(f, made);

    if (result != made)
        *(CUresult *)c->returns = result;
    if (!f->traced)
        return;

    const bool early = hed_cuda_info[f->id].flags & HED_CALL_INOUT;

    hed_trace_put_cuda(hed_inject.writer,
                       &(struct hed_trace_call){
                           .id = f->id,
                           .result = (int32_t)result,
                           .args = f->args,
                           .start = f->start,
                           .duration = hed_trace_ticks(hed_inject.writer) - f->start,
                           .correlation = f->correlation,
                           .early = early ? &f->early : NULL,
                       });
}

/* The frame of a call that returns; NULL if its beginning was not seen. Those behind it belong to
 * calls that never returned. */
static struct frame *
find_frame(uint32_t correlation)
{
    unsigned i = mine.depth;

    while (i > 0 && mine.frames[i - 1].correlation != correlation)
        i--;
    if (i == 0)
        return NULL;
    while (mine.depth > i)
        abandon_frame(&mine.frames[--mine.depth]);
    mine.depth--;
    return &mine.frames[i - 1];
}

/* Is this callback caused by a call of ours? Not if it is no deeper on the stack than the callback
 * that makes calls: then the program has jumped out of that one. */
static bool
is_our_own_call(uintptr_t stack)
{
    return hed_recorder_inside() || (mine.inside && stack < mine.stack);
}

void
hed_inject_callback(void *user, int domain, uint32_t id, const void *data)
{
    const struct hed_cupti_call *c = data;

    if (domain != HED_CUPTI_DRIVER_API || id >= HED_CUPTI_CALLS_MAX || !c)
        return;

    const struct hed_inject_call *call = &hed_inject.calls[id];

    /* Relaxed: it is set while there is only one thread. */
    if (!call->wants || atomic_load_explicit(&hed_inject.off, memory_order_relaxed))
        return;

    const uintptr_t stack = (uintptr_t)__builtin_frame_address(0);

    if (is_our_own_call(stack)) {
        const uint64_t tag = hed_recorder_tag() ? hed_recorder_tag() : mine.instead;

        if (tag && c->site == HED_CUPTI_ENTER)
            hed_inject_link(c->correlation, tag);
        return;
    }
    mine.inside = true;
    mine.stack = stack;
    if (c->site == HED_CUPTI_ENTER) {
        enter_call(c, call);
    } else if (c->site == HED_CUPTI_EXIT) {
        struct frame *f = find_frame(c->correlation);

        if (f && c->returns)
            leave_call(c, f);
        else if (f)
            abandon_frame(f);
    }
    mine.inside = false;
}
