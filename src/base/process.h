/* What the kernel tells about another process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* /proc/PID/stat from the end of the program's name on, which may hold anything: at[2] is the
 * state, field 3, and the others follow it, one blank each. NULL: there is no such process, or it
 * cannot be told. The text is in `room`. */
const char *hed_process_stat(pid_t pid, char *room, size_t size);

/* When a process was started, in ticks since the computer was, so that a number that is used again
 * can be told. 0: there is no such process, or only its remains, or it cannot be told. */
uint64_t hed_process_start(pid_t pid);

/* A number for the family of a process: the processes that one command has started, by forks of any
 * depth, as far as they stayed in its process group. Numbers of PID namespaces differ. 0: there is
 * no such process, or it cannot be seen from here. */
uint64_t hed_process_family(pid_t pid);

/* Is the process stopped, by a signal or a debugger, or dead? If the kernel does not tell: no. */
bool hed_process_is_stopped(pid_t pid);
