/* Shared by the tests of ptx: turns text into modules. */
#pragma once

#include "harness/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/text/parse.h"
#include "kernel/ptx/text/print.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* The registers of every body, on one line, the fifth of the text. */
#define REGS                                                                                    \
    ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<99>; .reg .f32 %f<9>; .reg .b64 %rd<9>; " \
    ".reg .f64 %fd<9>; .reg .b128 %q<3>;\n"

#define KERNEL(body) HEAD ".visible .entry k(.param .u64 a, .param .u32 n) {\n" REGS body "}\n"

/* Parses the text, and fails the test if it is wrong. */
static inline void
make_module(struct hed_ptx_module *m, const char *text)
{
    struct hed_buf log;

    hed_ptx_module_init(m, HED_PTX_CEILING);
    hed_buf_init(&log, 65536);
    if (hed_ptx_parse(m, text, strlen(text)) != 0) {
        hed_ptx_log(m, &log);
        fail_msg("%s\n%s", text, hed_buf_cstr(&log));
    }
    hed_buf_fini(&log);
}

static inline const struct hed_ptx_func *
func(const struct hed_ptx_module *m, const char *name)
{
    for (const struct hed_ptx_func *f = m->funcs; f; f = f->next) {
        if (strcmp(f->name, name) == 0)
            return f;
    }
    fail_msg("no function %s", name);
    return NULL;
}

/* The n-th instruction of a function, from 0. */
static inline const struct hed_ptx_inst *
inst(const struct hed_ptx_func *f, int n)
{
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        if (s->kind == HED_PTX_STMT_INST && n-- == 0)
            return (const struct hed_ptx_inst *)s;
    }
    fail_msg("%s has too few instructions", f->name);
    return NULL;
}

static inline const struct hed_ptx_var *
var(const struct hed_ptx_module *m, const char *name)
{
    for (const struct hed_ptx_item *i = m->items; i; i = i->next) {
        if (i->kind == HED_PTX_ITEM_VAR && strcmp(i->var->name, name) == 0)
            return i->var;
    }
    fail_msg("no variable %s", name);
    return NULL;
}
