/* The functions of struct hed_ptx_host (kernel/ptx/run/abi.h says what they do), as this runner
 * defines them. */
#pragma once

#include "kernel/ptx/run/abi.h"

void hed_rt_yield(struct hed_ptx_warp *s);
void hed_rt_trap(struct hed_ptx_warp *s, uint32_t trap, uint32_t line) __attribute__((noreturn));
void hed_rt_refuse(struct hed_ptx_warp *s, const char *text, uint32_t line)
    __attribute__((noreturn));
void hed_rt_nanosleep(struct hed_ptx_warp *s, uint32_t ns);
uint64_t hed_rt_clock(struct hed_ptx_warp *s);
uint64_t hed_rt_globaltimer(struct hed_ptx_warp *s);
void hed_rt_barrier(struct hed_ptx_warp *s, uint32_t id, uint32_t threads, uint32_t arriving);
void hed_rt_barrier_arrive(struct hed_ptx_warp *s, uint32_t id, uint32_t threads,
                           uint32_t arriving);
uint32_t hed_rt_barrier_reduce(struct hed_ptx_warp *s, uint32_t id, uint32_t threads,
                               uint32_t arriving, uint32_t trues, uint32_t op);
uint32_t hed_rt_vprintf(struct hed_ptx_warp *s, uint64_t format, uint64_t args);
void hed_rt_assertfail(struct hed_ptx_warp *s, uint64_t message, uint64_t file, uint32_t line,
                       uint64_t function, uint64_t char_size);
uint64_t hed_rt_malloc(struct hed_ptx_warp *s, uint64_t size);
void hed_rt_free(struct hed_ptx_warp *s, uint64_t p);
void hed_rt_set_condition(struct hed_ptx_warp *s, uint64_t handle, uint32_t value);
uint64_t hed_rt_device_call(struct hed_ptx_warp *s, uint32_t which, uint64_t a0, uint64_t a1,
                            uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                            uint64_t a7);
void hed_rt_texture(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
                    uint32_t out[4], uint32_t line);
void hed_rt_surface(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
                    void *data, uint32_t line);
void hed_rt_surface_reduce(struct hed_ptx_warp *s, uint64_t object, uint64_t access,
                           const uint32_t *in, const void *data, uint32_t line);
uint32_t hed_rt_texture_query(struct hed_ptx_warp *s, uint64_t object, uint32_t query,
                              uint32_t level, uint32_t line);

/* All of them: for the baseline tier, and for compiled code by name. */
extern const struct hed_ptx_host hed_engine_ptx_host;
extern const struct hed_ptx_symbol hed_engine_runtime[];
