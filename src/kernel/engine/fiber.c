/* The initial contents of a fiber's stack, which must match the layout in fiber.S. */
#include "kernel/engine/fiber.h"

#include <stdint.h>
#include <string.h>

void hed_fiber_begin(void);

#if defined(__aarch64__)

void *
hed_fiber_make(void *top, void (*fn)(void *arg), void *arg)
{
    uint64_t *frame = (uint64_t *)top - 22;

    memset(frame, 0, 22 * sizeof *frame);
    frame[8] = (uint64_t)(uintptr_t)fn;               /* x19 */
    frame[9] = (uint64_t)(uintptr_t)arg;              /* x20 */
    frame[19] = (uint64_t)(uintptr_t)hed_fiber_begin; /* x30 */
    return frame;
}

#else

void *
hed_fiber_make(void *top, void (*fn)(void *arg), void *arg)
{
    /* One word more: where a function begins, the stack pointer is 8 below a multiple of 16, and
     * hed_fiber_begin is entered by a return. */
    uint64_t *frame = (uint64_t *)top - 10;

    memset(frame, 0, 10 * sizeof *frame);
    frame[0] = UINT64_C(0x037f00001f80); /* x87 control word, mxcsr: as a process starts */
    frame[3] = (uint64_t)(uintptr_t)arg; /* r13 */
    frame[4] = (uint64_t)(uintptr_t)fn;  /* r12 */
    frame[7] = (uint64_t)(uintptr_t)hed_fiber_begin; /* the return address */
    return frame;
}

#endif

#if HED_ASAN

void __sanitizer_start_switch_fiber(void **fake, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake, const void **bottom, size_t *size);
void __asan_unpoison_memory_region(void const volatile *p, size_t size);

void
hed_side_switch(struct hed_side *from, struct hed_side *to)
{
    __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->size);
    hed_fiber_switch(&from->sp, to->sp);
    __sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
}

void
hed_side_leave(struct hed_side *from, struct hed_side *to)
{
    __sanitizer_start_switch_fiber(NULL, to->bottom, to->size);
    hed_fiber_jump(to->sp);
}

void
hed_side_first(struct hed_side *other)
{
    __sanitizer_finish_switch_fiber(NULL, &other->bottom, &other->size);
}

void
hed_side_divert(struct hed_side *to)
{
    /* The interrupted stack is abandoned, but the handler still has to return: passing NULL might
     * free its own frames. */
    static _Thread_local void *lost;

    __sanitizer_start_switch_fiber(&lost, to->bottom, to->size);
}

void
hed_side_init(struct hed_side *s, void *bottom, size_t size)
{
    __asan_unpoison_memory_region(bottom, size);
    s->bottom = bottom;
    s->size = size;
}

#endif
