/* PTX through machine code and back: ptxas, then the lifter. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernel/sass/lift.h"

struct lifted {
    const char *ptxas, *arch;  /* "sm_80" */
    char ptx[512], cubin[512]; /* files */
};

/* Files are in the test's own folder. False if there is no such ptxas. */
bool lifted_init(struct lifted *t, const char *ptxas, const char *arch);

/* Leaves the cubin of the text, for `arch` whatever its target is; false, with what ptxas says, if
 * it is wrong. Products and sums stay apart. */
bool lifted_assemble(const struct lifted *t, const char *text, struct hed_buf *said);

/* Appends the PTX of the cubin's only kernel. */
int lifted_text(const struct lifted *t, enum hed_sass_for use, struct hed_buf *ptx,
                struct hed_why *why);
