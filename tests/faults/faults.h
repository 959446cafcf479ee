/* What the preloaded library (faults.c) and the test that controls it (control.py) share: a page of
 * a file that both have mapped. control.py repeats the layout.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define HED_FAULTS_LOGGED 65536 /* operations whose place is kept */

enum hed_faults_role {
    HED_FAULTS_CLIENT = 1, /* bits */
    HED_FAULTS_LISTENER = 2,
    HED_FAULTS_WORKER = 4,
};

/* What fails. An operation counts only if it can fail in this way. */
enum hed_faults_kind {
    HED_FAULTS_MEMORY,    /* memory: ENOMEM */
    HED_FAULTS_THINGS,    /* files, sockets, threads, processes: EMFILE or EAGAIN */
    HED_FAULTS_SPACE,     /* room in files: ENOSPC */
    HED_FAULTS_SHORT,     /* reads and writes do half of what they could */
    HED_FAULTS_INTERRUPT, /* a signal arrives: EINTR */
    HED_FAULTS_AGAIN,     /* what need not wait does not: EAGAIN */
    HED_FAULTS_BROKEN,    /* sockets: ECONNRESET or EPIPE; reading files: EIO */
};

struct hed_faults_control {
    _Atomic uint32_t roles; /* bits of enum hed_faults_role; 0: nothing is counted */
    _Atomic uint32_t kind;
    _Atomic uint64_t count; /* operations so far */
    _Atomic uint64_t at;    /* the operation that fails, from 1 on; 0: none */
    _Atomic uint64_t fired; /* how many have failed */
    _Atomic int64_t blocks; /* of memory that the listener has */
    char where[176];        /* the object and the offset in it of the call that failed */
    _Atomic uint64_t places[HED_FAULTS_LOGGED]; /* of call n in n - 1: a hash of that */
};
