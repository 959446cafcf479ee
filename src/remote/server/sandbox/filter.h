/* A filter of system calls: from rows to the kernel's classic BPF. See calls.c for the rows. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum hed_filter_test {
    HED_CALL_ALWAYS,  /* allowed with all arguments */
    HED_CALL_AMONG,   /* allowed if the argument is one of `values` */
    HED_CALL_MASKED,  /* `values` are masks and values: allowed if one pair fits */
    HED_CALL_SETS,    /* allowed if the argument has the bit of values[0] */
    HED_CALL_NULL,    /* allowed if the argument, a pointer, is NULL */
    HED_CALL_ON_SELF, /* allowed if the argument is the number of this process */
    HED_CALL_NEVER,   /* answered with `error` */
    HED_CALL_KILLS    /* ends the process */
};

struct hed_filter_row {
    int number; /* of the call */
    enum hed_filter_test test;
    int argument; /* the one that is tested, from 0 */
    const uint32_t *values;
    size_t count;
    int error;                         /* the errno if the test fails; 0: EPERM */
    const struct hed_filter_row *also; /* a test that must succeed, too, or NULL */
};

struct hed_filter_list {
    const struct hed_filter_row *rows;
    size_t count;
};

/* Applies the lists, ended by one without rows, to this process. The first row of a call counts.
 * Calls that are in no list do not exist (ENOSYS). Returns 0 or a negative errno. */
int hed_filter_apply(const struct hed_filter_list *lists);

extern const struct hed_filter_list hed_filter_helper; /* helper_calls.c */

/* The filter of the processes that do TLS handshakes. */
int hed_filter_gate(void);
/* That of the device of a QEMU guest. */
int hed_filter_bridge(void);
