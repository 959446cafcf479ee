/* `heddle snap save` ends the program that it has saved. The heddle command that has started the
 * program, and waits for it, would see only that it was killed. So a file, "saved-PID" in the
 * folder where processes meet, tells it where the program was saved.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Before the program is ended. `socket` is where it listens (move/talk/talk.h), `file` the
 * snapshot. Does nothing if its parent is no heddle command. */
void hed_saved_tell(const char *socket, pid_t pid, const char *file);

/* After a child of ours has been killed: was it saved before? Forgets it. */
bool hed_saved_hear(pid_t pid, char *file, size_t size);
