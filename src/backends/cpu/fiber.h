/* Stacks that can be left and come back to.
 *
 * A fiber is a stopped stack; its stack pointer says everything. It always runs on the thread that
 * made it run, so thread-local variables keep their addresses.
 */
#pragma once

#include <stddef.h>

/* Stops the running stack, leaves its stack pointer in *save, and goes on with `to`: another that
 * was stopped or made. Returns when somebody goes on with *save. What a C function may expect of a
 * call holds: the registers it keeps, the floating-point mode. */
void hed_fiber_switch(void **save, void *to);

/* Goes on with `to`; the running stack is given up. The signal handler lets an interrupted kernel
 * go on here instead of where it was, with `to` as the argument, so it must not use the stack. */
_Noreturn void hed_fiber_jump(void *to);

/* A stack whose last byte is before `top` (aligned to 16) that will call fn(arg), which must not
 * return, in the default floating-point mode. */
void *hed_fiber_make(void *top, void (*fn)(void *arg), void *arg);

#if defined(__SANITIZE_ADDRESS__)
#define HED_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HED_FIBER_ASAN 1
#endif
#endif
#ifndef HED_FIBER_ASAN
#define HED_FIBER_ASAN 0
#endif

/* A stack, with what AddressSanitizer wants to know about it. ThreadSanitizer is told nothing: it
 * has room for some hundred fibers only, so what runs on them is compiled without it
 * (CMakeLists.txt). */
struct hed_side {
    void *sp; /* while it is stopped */
    const void *bottom;
    size_t size;
    void *fake;
};

#if HED_FIBER_ASAN
void hed_side_switch(struct hed_side *from, struct hed_side *to);
_Noreturn void hed_side_leave(struct hed_side *from, struct hed_side *to);
/* First thing on a new stack, which was come to from `other`. */
void hed_side_first(struct hed_side *other);
/* In a signal handler, before it lets the interrupted stack go on with `to`. */
void hed_side_divert(struct hed_side *to);
/* A stack is made, perhaps where another was. */
void hed_side_init(struct hed_side *s, void *bottom, size_t size);
#else
static inline void
hed_side_switch(struct hed_side *from, struct hed_side *to)
{
    hed_fiber_switch(&from->sp, to->sp);
}

static inline _Noreturn void
hed_side_leave(struct hed_side *from, struct hed_side *to)
{
    hed_fiber_jump(to->sp);
}

static inline void
hed_side_first(struct hed_side *other)
{
}

static inline void
hed_side_divert(struct hed_side *to)
{
}

static inline void
hed_side_init(struct hed_side *s, void *bottom, size_t size)
{
}

#endif
