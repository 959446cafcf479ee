/* Which call a callback id stands for, and what we want of it. CUPTI gives the names. Nothing is
 * known beforehand, so the ids of a newer CUPTI work as well. */
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "see/inject/inject.h"
#include "see/inject/launch.h"

/* cuLaunchKernel_ptsz is cuLaunchKernel on the calling thread's own default stream. */
static bool
cut_suffix(char *name)
{
    static const char *const suffixes[] = {"_ptsz", "_ptds"};
    const size_t n = strlen(name);

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t s = strlen(suffixes[i]);

        if (n > s && strcmp(name + n - s, suffixes[i]) == 0) {
            name[n - s] = '\0';
            return true;
        }
    }
    return false;
}

static struct hed_inject_call
find_injected_call(const char *name)
{
    struct hed_inject_call c = {0};
    char plain[128];

    if (!hed_str_copy(plain, sizeof plain, name))
        return c;
    c.ptds = cut_suffix(plain);
    c.id = (uint16_t)hed_call_find(HED_API_CUDA, plain);
    if (c.id && hed_cuda_info[c.id].size > HED_INJECT_ARGS) {
        hed_warn(INJECT, "%s has too many arguments, so heddle does not see its calls", name);
        c.id = 0;
    }
    if (c.id && c.ptds && hed_cuda_info[c.id].ptds < 0) {
        hed_warn(INJECT, "heddle does not know the variant %s, so it does not see its calls", name);
        c.id = 0;
    }
    return c;
}

/* A launch that cannot be kept from running must not be taken: it waits for those that were. So
 * does a call that heddle does not know. */
static uint8_t
wants_record(const struct hed_inject *i, const struct hed_inject_call *c)
{
    if (!c->id)
        return HED_INJECT_DRAIN;
    if (hed_cuda_info[c->id].does == HED_DOES_LAUNCH && !hed_inject_voids(c->id))
        return HED_INJECT_DRAIN;
    return hed_cuda_info[c->id].after != HED_AFTER_NONE || i->sched->type->sees(c->id)
               ? HED_INJECT_RECORD
               : 0;
}

static uint8_t
wants_of_call(const struct hed_inject *i, const struct hed_inject_call *c)
{
    uint8_t w = i->record ? wants_record(i, c) : 0;

    if (c->id && i->writer)
        w |= HED_INJECT_TRACE;
    if (c->id && i->sched && i->sched->type->sees(c->id))
        w |= HED_INJECT_GATE;
    return w;
}

unsigned
hed_inject_list(struct hed_inject *i)
{
    unsigned count = 0;
    const char *name;

    for (uint32_t id = 1; id < HED_CUPTI_CALLS_MAX; id++) {
        name = NULL;
        if (hed_cupti.cuptiGetCallbackName(HED_CUPTI_DRIVER_API, id, &name) != 0 || !name)
            break;

        struct hed_inject_call c = find_injected_call(name);

        c.wants = wants_of_call(i, &c);
        i->calls[id] = c;
        count += c.wants != 0;
        if (!c.id)
            hed_debug(INJECT, "%s is not known", name);
    }
    return count;
}
