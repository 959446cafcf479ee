/* A hint to the CPU inside a loop that waits for memory to change. */
#pragma once

static inline void
hed_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` does nothing on most cores */
#else
    __asm__ volatile("" ::: "memory");
#endif
}
