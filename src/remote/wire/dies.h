/* For tests, in debug builds only: a process dies at its n-th message. */
#pragma once

/* Counts a message. At the number that the environment variable gives (a number, or the path of a
 * file that contains one), the process is killed, as by kill -9. */
#ifdef HED_DEBUG
void hed_dies_count(const char *variable);
#else
static inline void
hed_dies_count(const char *variable)
{
    (void)variable;
}
#endif
