/* The fault layer: makes the n-th call of a name fail with a given error, to test the layers above
 * it and programs: what does my code do when the third allocation fails?
 *
 *     HEDDLE_FAULT=cuMemAlloc_v2:3:CUDA_ERROR_OUT_OF_MEMORY,cuLaunchKernel:*:700
 *
 * N counts calls of that name in this process, from 1; `*` fails every one. The error is a name or
 * a number of the API's results. A call that fails this way does not reach the layer below.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config.h"
#include "core/errors.h"
#include "core/layer.h"
#include "core/stats.h"

#define RULES_MAX 64
#define EVERY 0 /* as n: each call */

struct rule {
    enum hed_api api;
    uint32_t call;
    uint64_t n;
    int32_t result;
    _Atomic uint64_t seen; /* calls of that name so far */
};

struct fault {
    struct rule rules[RULES_MAX];
    size_t count;
};

/* The result to fail a call with, or 0. */
static int32_t
planned_result(struct fault *f, enum hed_api api, uint32_t call)
{
    int32_t result = 0;

    for (size_t i = 0; i < f->count; i++) {
        struct rule *r = &f->rules[i];

        if (r->api != api || r->call != call)
            continue;

        const uint64_t n = atomic_fetch_add_explicit(&r->seen, 1, memory_order_relaxed) + 1;

        if (!result && (r->n == EVERY || r->n == n))
            result = r->result;
    }
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

/* Reads NAME:N:ERROR, which is changed. */
static int
parse_rule(struct rule *r, char *text, struct hed_why *why)
{
    char *rest = text;
    const char *name = strsep(&rest, ":");
    const char *n = strsep(&rest, ":");
    const char *error = rest;

    if (!n || !error) {
        hed_why_set(why, "fault: '%.64s' is not NAME:N:ERROR, such as cuInit:1:CUDA_ERROR_UNKNOWN",
                    name);
        return HED_EFORMAT;
    }
    r->api = strncmp(name, "nvml", 4) == 0 ? HED_API_NVML : HED_API_CUDA;
    r->call = hed_call_find(r->api, name);
    if (!r->call) {
        hed_why_set(
            why, "fault: there is no call '%.64s'; use its full name, such as cuMemAlloc_v2", name);
        return HED_ENOTFOUND;
    }
    r->n = EVERY;
    if (strcmp(n, "*") != 0 && (hed_parse_u64(n, &r->n) || r->n == 0)) {
        hed_why_set(why, "fault: '%.64s' is neither * nor a number from 1 on", n);
        return HED_EINVAL;
    }

    CUresult cuda = CUDA_SUCCESS;
    nvmlReturn_t nvml = NVML_SUCCESS;
    const int err = r->api == HED_API_CUDA ? hed_cuda_error_parse(error, &cuda)
                                           : hed_nvml_error_parse(error, &nvml);

    r->result = r->api == HED_API_CUDA ? (int32_t)cuda : (int32_t)nvml;
    if (err || r->result == 0) {
        hed_why_set(why, "fault: '%.64s' is not the name or number of an error", error);
        return HED_EINVAL;
    }
    return 0;
}

static int
fault_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    struct fault *f = calloc(1, sizeof *f);
    char list[HED_CONFIG_TEXT_MAX];
    char *rest = list;
    char *text;
    int err = f ? 0 : HED_ENOMEM;

    (void)hed_str_copy(list, sizeof list, config->fault);
    while (!err && *list && (text = strsep(&rest, ",")) != NULL) {
        if (f->count == RULES_MAX) {
            hed_why_set(why, "fault: more than %d rules", RULES_MAX);
            err = HED_ELIMIT;
        } else {
            err = parse_rule(&f->rules[f->count++], hed_str_trim(text), why);
        }
    }
    if (err) {
        free(f);
        return err;
    }
    self->state = f;
    return 0;
}

const struct hed_layer_type hed_fault_layer = {
    .name = "fault",
    .cuda_any = fault_cuda_any,
    .nvml_any = fault_nvml_any,
    .init = fault_init,
};
