/* Reads the setting `fault`. See fault.h. */
#include "core/fault.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "core/config.h"
#include "core/errors.h"

/* Reads NAME:N:ERROR, which is changed. */
static int
parse_fault_rule(struct hed_fault_rule *r, char *text, struct hed_why *why)
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
    r->n = HED_FAULT_EVERY;
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

int
hed_fault_parse(const char *text, struct hed_fault_rule *rules, size_t *count, struct hed_why *why)
{
    char list[HED_CONFIG_TEXT_MAX];
    char *rest = list;
    char *rule;
    size_t n = 0;

    if (!hed_str_copy(list, sizeof list, text)) {
        hed_why_set(why, "fault: longer than %zu characters", sizeof list - 1);
        return HED_ELIMIT;
    }
    while (*list && (rule = strsep(&rest, ",")) != NULL) {
        if (n == HED_FAULT_RULES) {
            hed_why_set(why, "fault: more than %d rules", HED_FAULT_RULES);
            return HED_ELIMIT;
        }

        const int err = parse_fault_rule(&rules[n++], hed_str_trim(rule), why);

        if (err)
            return err;
    }
    *count = n;
    return 0;
}
