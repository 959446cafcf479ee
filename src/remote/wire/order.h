/* Orders and reports, as they come from a peer that may be hostile. See wire.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hed_order;
struct hed_order_report;
struct hed_why;

/* Fill in what begins each of them; the rest is zero. */
void hed_order_init(struct hed_order *o, uint32_t action);
void hed_order_report_init(struct hed_order_report *r, uint64_t number, uint32_t state);

/* Check n bytes of any contents. An order that passes has a text that ends, is not empty and has no
 * control characters; its action may be unknown, and its address none. A report that passes has a
 * known state, and texts that end and can be shown to people. HED_EFORMAT; *out is then untouched.
 */
int hed_order_check(const void *bytes, size_t n, struct hed_order *out, struct hed_why *why);
int hed_order_report_check(const void *bytes, size_t n, struct hed_order_report *out,
                           struct hed_why *why);
