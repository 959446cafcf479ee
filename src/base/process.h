/* What the kernel tells about another process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* /proc/PID/stat from the end of the program's name on, which may hold anything: at[2] is the
 * state, field 3, and the others follow it, one blank each. NULL: there is no such process, or it
 * cannot be told. The text is in `room`. */
const char *hed_process_stat(pid_t pid, char *room, size_t size);

/* Is the process stopped, by a signal or a debugger, or dead? If the kernel does not tell: no. */
bool hed_process_is_stopped(pid_t pid);
