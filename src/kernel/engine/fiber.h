/* Stacks that can be suspended and resumed.
 *
 * A fiber is a suspended stack, and its stack pointer is all that is needed to resume it. It always
 * runs on the same thread, so thread-local variables keep their addresses.
 */
#pragma once

#include <stddef.h>

#include "base/sanitize.h"

/* Suspends the running stack, stores its stack pointer in *save, and continues with `to`, another
 * that was suspended or made. Returns when *save is resumed. To the caller it is an ordinary call:
 * saved registers and the floating-point mode are kept. */
void hed_fiber_switch(void **save, void *to);

/* Continues with `to`; the running stack is abandoned. The signal handler makes an interrupted
 * kernel continue here, with `to` as the argument, so this must not use the stack. */
_Noreturn void hed_fiber_jump(void *to);

/* Makes a stack that ends at `top` (aligned to 16) and will call fn(arg) in the default
 * floating-point mode. fn must not return. */
void *hed_fiber_make(void *top, void (*fn)(void *arg), void *arg);

/* A stack, with what AddressSanitizer has to know about it. ThreadSanitizer is not told: it has
 * room for only some hundred fibers, so the code that runs on them is compiled without it
 * (CMakeLists.txt). */
struct hed_side {
    void *sp; /* while it is suspended */
    const void *bottom;
    size_t size;
    void *fake;
};

#if HED_ASAN
void hed_side_switch(struct hed_side *from, struct hed_side *to);
_Noreturn void hed_side_leave(struct hed_side *from, struct hed_side *to);
/* The first call on a new stack; control came from `other`. */
void hed_side_first(struct hed_side *other);
/* In a signal handler, before it makes the interrupted code continue with `to`. */
void hed_side_divert(struct hed_side *to);
/* A stack is made, perhaps where another one was. */
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
