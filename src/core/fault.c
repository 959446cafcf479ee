/* Reads the setting `fault`. See fault.h. */
#include "core/fault.h"

#include <fnmatch.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "core/config.h"
#include "core/errors.h"
#include "gen/cuda_calls.h"
#include "gen/nvml_calls.h"

_Static_assert(HED_CUDA_CALLS <= HED_FAULT_CALLS && HED_NVML_CALLS <= HED_FAULT_CALLS,
               "a rule has a bit for each call");

/* Is `call` the call `name`, or a version of it, which ends with _v2? */
static bool
is_version_of(const char *call, const char *name)
{
    const size_t n = strlen(name);

    if (strncmp(call, name, n) != 0)
        return false;
    if (call[n] == '\0')
        return true;
    return strncmp(call + n, "_v", 2) == 0 && call[n + 2] != '\0' &&
           call[n + 2 + strspn(call + n + 2, "0123456789")] == '\0';
}

/* Sets the bits of the calls that a rule is about. HED_ENOTFOUND. */
static int
find_faulty_calls(struct hed_fault_rule *r, const char *name, struct hed_why *why)
{
    const bool pattern = strchr(name, '*') != NULL;
    bool found = false;

    for (uint32_t id = 1; id < HED_FAULT_CALLS; id++) {
        const struct hed_call_info *info = hed_call_info(r->api, id);

        if (!info ||
            (pattern ? fnmatch(name, info->name, 0) != 0 : !is_version_of(info->name, name)))
            continue;
        r->calls[id / 64] |= UINT64_C(1) << id % 64;
        found = true;
    }
    if (found)
        return 0;
    if (strncmp(name, "cuda", 4) == 0)
        hed_why_set(why,
                    "fault: '%.64s' is of the CUDA runtime; name the driver's call that it makes, "
                    "which a trace shows",
                    name);
    else
        hed_why_set(why, "fault: there is no call '%.64s'; use its full name, such as cuMemAlloc",
                    name);
    return HED_ENOTFOUND;
}

/* Reads 3, 2-4, 3- or *. */
static int
parse_fault_numbers(struct hed_fault_rule *r, const char *text, struct hed_why *why)
{
    char copy[48];
    char *last = copy;
    const char *first;
    bool good = hed_str_copy(copy, sizeof copy, text);

    r->first = 1;
    r->last = UINT64_MAX;
    if (strcmp(text, "*") == 0)
        return 0;
    first = strsep(&last, "-");
    good = good && hed_parse_u64(first, &r->first) == 0 && r->first > 0;
    if (good && !last)
        r->last = r->first;
    else if (good && *last)
        good = hed_parse_u64(last, &r->last) == 0 && r->last >= r->first;
    if (good)
        return 0;
    hed_why_set(
        why, "fault: '%.64s' is neither * nor a number from 1 on; nor a range, such as 2-4 or 3-",
        text);
    return HED_EINVAL;
}

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
    memset(r, 0, sizeof *r);
    r->api = strncmp(name, "nvml", 4) == 0 ? HED_API_NVML : HED_API_CUDA;

    int err = find_faulty_calls(r, name, why);

    err = err ? err : parse_fault_numbers(r, n, why);
    if (err)
        return err;

    CUresult cuda = CUDA_SUCCESS;
    nvmlReturn_t nvml = NVML_SUCCESS;

    err = r->api == HED_API_CUDA ? hed_cuda_error_parse(error, &cuda)
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
