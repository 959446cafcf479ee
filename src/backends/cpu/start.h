/* Starting a process that the program does not notice. */
#pragma once

/* Starts the executable at `path` with these arguments (NULL ends them), and with descriptors[0],
 * descriptors[1], ... as its descriptors 3, 4, ...; it has no others, /dev/null as its standard
 * input and output, signals as at a login, a session of its own, and few variables.
 *
 * It is no child of the program: the program's wait() does not see it, and no SIGCHLD comes. No
 * handler of fork() is called. 0 or a negative errno. At most HED_START_DESCRIPTORS descriptors. */
#define HED_START_DESCRIPTORS 16
int hed_start_process(const char *path, char *const *arguments, const int *descriptors,
                      unsigned count);
