/* A random number, for the compiler that has LLVM inside (HEDDLE_STATIC).
 *
 * LLVM and the C++ library were built to ask arc4random() for names of temporary files. That came
 * with glibc 2.36, newer than all else that we need of the C library, so the link gives them this
 * function in its place (--defsym).
 */
#include <stdint.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

uint32_t hed_ptx_static_random(void);

uint32_t
hed_ptx_static_random(void)
{
    uint32_t value;

    if (getrandom(&value, sizeof value, 0) == (ssize_t)sizeof value)
        return value;

    /* A sandbox may refuse the call. Names need to differ, not to be secret: files are opened so
     * that one that exists is refused. */
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_nsec * 2654435761U ^ (uint32_t)getpid();
}
