/* Arithmetic on the classes that values have (uniform.h): sums, products and the like of rows. */
#pragma once

#include "kernel/ptx/pass/uniform.h"

/* In hed_uniform.wraps: the value that the instruction makes. */
#define HED_WRAPS_HERE (UINT32_MAX - 1)

/* How many of the lowest bits of a number are 0. */
uint8_t hed_class_align(uint64_t v);
/* A constant of so many bits, with its sign. */
int64_t hed_class_number(uint64_t v, unsigned bits);

struct hed_uniform hed_class_constant(uint64_t value);
/* Does it differ within a row? */
bool hed_class_has_steps(struct hed_uniform c);
/* In how many of the lowest bits lanes differ at most; 64: in any. */
unsigned hed_class_differ(struct hed_uniform operand);
/* Its bits that are the same in all lanes. */
uint64_t hed_class_same(const struct hed_uniforms *u, struct hed_uniform c);
bool hed_class_is_same(const struct hed_uniform *a, const struct hed_uniform *b);
/* Does it differ from lane to lane by what is known? Then sets what each lane has more than the
 * first. */
bool hed_class_get_offsets(struct hed_uniform c, int64_t lanes[HED_PTX_LANES]);
/* Are the first lane's number and what other lanes have more in different bits? Then no lane
 * carries into the bits above. */
bool hed_class_never_carries(struct hed_uniform c);
/* A number and these offsets, in warps that are one row: uniform, rows, offsets, or it varies. */
struct hed_uniform hed_class_offsets(const struct hed_uniforms *u,
                                     const int64_t lanes[HED_PTX_LANES], unsigned align);
/* Rows with a step; in rows of 32, a step of 0 is uniform. */
struct hed_uniform hed_class_rows(const struct hed_uniforms *u, int64_t step, unsigned align);
/* The class of a value that is one or the other for all lanes. */
struct hed_uniform hed_class_join(const struct hed_uniforms *u, struct hed_uniform a,
                                  struct hed_uniform b);
/* A sum, or with sign -1 a difference. */
struct hed_uniform hed_class_add(const struct hed_uniforms *u, struct hed_uniform a,
                                 struct hed_uniform b, int sign);
struct hed_uniform hed_class_scale(const struct hed_uniforms *u, struct hed_uniform a, int64_t by);
/* A product; a constant factor keeps rows. */
struct hed_uniform hed_class_multiply(const struct hed_uniforms *u, struct hed_uniform a,
                                      struct hed_uniform b, unsigned bits);
/* A number of 32 bits that is widened. What differs between lanes may wrap around. */
struct hed_uniform hed_class_widen(struct hed_uniform a);
