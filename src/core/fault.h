/* The rules of the setting `fault`: which calls fail on purpose. The layer of that name follows
 * them; the command line checks them before it starts a program, and a program adds some while it
 * runs (heddle.h).
 *
 *     cuMemAlloc:3:CUDA_ERROR_OUT_OF_MEMORY,cuLaunch*:2-4:700
 *
 * A name without its version means all versions of the call, and `*` in a name means any letters.
 * N counts the calls that a rule is about, from 1: one of them, from one to another one (2-4), from
 * one on (3-), or `*`, every one. The error is a name or a number of the API's results.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/call.h"

struct hed_why;

#define HED_FAULT_RULES 64    /* at most */
#define HED_FAULT_CALLS 1024u /* of an API, at most */

struct hed_fault_rule {
    enum hed_api api;
    int32_t result; /* CUresult or nvmlReturn_t; never a success */
    uint64_t first, last;
    uint64_t calls[HED_FAULT_CALLS / 64]; /* bits: enum hed_cuda_call or enum hed_nvml_call */
};

static inline bool
hed_fault_is_about(const struct hed_fault_rule *r, enum hed_api api, uint32_t call)
{
    return r->api == api && call < HED_FAULT_CALLS && (r->calls[call / 64] >> call % 64 & 1);
}

/* Reads the rules, at most HED_FAULT_RULES; "" has none. HED_EFORMAT, HED_ENOTFOUND, HED_EINVAL,
 * HED_ELIMIT, with the reason. */
int hed_fault_parse(const char *text, struct hed_fault_rule *rules, size_t *count,
                    struct hed_why *why);
