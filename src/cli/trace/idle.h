/* What the program did while a GPU was idle, for `heddle trace summary`.
 *
 *     GPU       ████ kernel A          gap           ████ kernel B
 *     thread         ▒▒ another call ▒ (no call) ▒▒ launch of B ▒▒ (not begun yet)
 *
 * A gap lies between two pieces of work of one GPU. It is told by the thread whose call has caused
 * the second one, since that is what the GPU was waiting for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_cli_links;
struct hed_table;
struct hed_trace;

#define HED_IDLE_DEVICES_MAX 64 /* gaps of more GPUs are not counted */

/* Something that ran on a GPU. */
struct hed_gpu_span {
    uint32_t device;
    uint16_t kind;
    uint64_t start; /* ns */
    uint64_t end;   /* ns */
    uint64_t correlation;
};

#define HED_IDLE_PROGRAM "the program made no CUDA call"
#define HED_IDLE_PENDING "the next work had been asked for, but had not begun"
#define HED_IDLE_UNKNOWN "(the call that caused the next work is not in the trace)"

/* Counts the gaps of a trace in lines of these names, and one line for each call. The spans are
 * sorted by device and start. False if there is no memory. */
bool hed_idle_add(struct hed_table *idle, const struct hed_trace *t,
                  const struct hed_cli_links *links, const struct hed_gpu_span *spans,
                  size_t count);
