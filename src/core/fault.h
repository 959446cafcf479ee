/* The rules of the setting `fault`: which calls fail on purpose. The layer of that name follows
 * them; the command line checks them before it starts a program.
 *
 *     cuMemAlloc_v2:3:CUDA_ERROR_OUT_OF_MEMORY,cuLaunchKernel:*:700
 *
 * N counts calls of that name in this process, from 1; `*` means every call. The error is a name or
 * a number of the API's results.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/call.h"

struct hed_why;

#define HED_FAULT_RULES 64 /* at most */
#define HED_FAULT_EVERY 0  /* as n: every call */

struct hed_fault_rule {
    enum hed_api api;
    uint32_t call; /* enum hed_cuda_call or enum hed_nvml_call */
    uint64_t n;
    int32_t result; /* CUresult or nvmlReturn_t; never a success */
};

/* Reads the rules, at most HED_FAULT_RULES; "" has none. HED_EFORMAT, HED_ENOTFOUND, HED_EINVAL,
 * HED_ELIMIT, with the reason. */
int hed_fault_parse(const char *text, struct hed_fault_rule *rules, size_t *count,
                    struct hed_why *why);
