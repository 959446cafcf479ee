/* For tests, in debug builds only: a process that dies at its n-th message. */
#pragma once

/* Counts a message. When as many have been counted as the environment variable says (a number, or
 * the path of a file that has one), the process is killed, as kill -9 would. */
#ifdef HED_DEBUG
void hed_dies_count(const char *variable);
#else
static inline void
hed_dies_count(const char *variable)
{
    (void)variable;
}
#endif
