/* Attacks from inside a worker. Each is a function that tries something that a worker must not be
 * able to do, and returns whether it succeeded. attack.c tries each without the sandbox, where it
 * must succeed, and within it, where it must fail.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* What there is to be attacked; attack.c makes it anew for each try. */
struct target {
    char folder[64];   /* where the files of this test lie */
    char key[128];     /* a file that only the server's user can read */
    char other[128];   /* a file of another client, readable by the group of workers */
    char link[128];    /* a link */
    char library[128]; /* a library that is none of heddle's */
    int own;           /* the worker's own folder, in the folder of the files above */
    char socket[128];  /* a unix socket that somebody listens at */
    char abstract[32]; /* the same, with an abstract name, without the leading 0 */
    int terminal;      /* one end of a terminal, or -1 */
    int connected;     /* a socket that was there before the sandbox, or -1 */
    int port;          /* on 127.0.0.1: somebody listens there */
    pid_t listener;    /* a process of the server's user */
    pid_t worker;      /* a process in a sandbox of its own */
    void *secret;      /* an address in the listener */
};

extern struct target target;

enum needs {
    ANYBODY,
    ROOT,   /* only a server of root could do it without the sandbox */
    KERNEL, /* not all kernels can do it at all */
    ROOTED  /* only a root of its own prevents it, which not all machines can make */
};

struct attack {
    const char *name;
    bool (*succeeds)(void);
    enum needs needs;
    bool twice; /* something besides the filter of system calls prevents it, too */
};

#define THREADS 64                 /* that the sandbox of this test lets a worker have */
#define MEMORY ((size_t)256 << 20) /* bytes of private memory, the same */

extern const struct attack file_attacks[], process_attacks[], machine_attacks[]; /* end: no name */
