/* A hint to the CPU inside a loop that looks at memory until it changes. */
#pragma once

static inline void
hed_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` is free on most cores: no pause at all */
#else
    __asm__ volatile("" ::: "memory");
#endif
}
