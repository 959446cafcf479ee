/* Emptying a server: `heddle serve --drain --to ADDRESS`. */
#pragma once

/* Moves the programs of the server that listens at `listen` (NULL: at the usual address) to another
 * server, wherever they run, and then stops the empty server. What cannot be moved goes on, and so
 * does the server. Returns the exit code. */
int hed_cli_drain(const char *listen, const char *to);
