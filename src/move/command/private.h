/* A server for one program: for programs that use this machine's own devices, but whose session is
 * to be saved. Only through a server can it be taken down and made again.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct hed_why;

struct hed_private_server {
    pid_t pid;             /* 0: there is none */
    char folder[PATH_MAX]; /* of its socket */
    char address[PATH_MAX + 16];
};

/* Starts heddled with `gpu` (auto, gpu, cpu..., null), and waits until it listens. It ends when
 * this process does. HED_ENOTFOUND: heddle-server is not installed. */
int hed_private_start(const char *gpu, struct hed_private_server *out, struct hed_why *why);

/* Ends it and removes its folder. */
void hed_private_stop(struct hed_private_server *s);

/* Is it the address of such a server? That ends with its program, so nobody can go back to it. */
bool hed_private_is(const char *address);
