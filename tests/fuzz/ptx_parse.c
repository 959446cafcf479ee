/* Fuzz target: PTX text. If it parses, it is printed, parsed again, and prints the same. */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/text/parse.h"
#include "kernel/ptx/text/print.h"

#define CEILING ((size_t)64 << 20)

static void
check_operand(const struct hed_ptx_operand *o)
{
    must(o->kind != HED_PTX_OPERAND_NONE);
    if (o->kind == HED_PTX_OPERAND_VEC || o->kind == HED_PTX_OPERAND_PAIR ||
        o->kind == HED_PTX_OPERAND_LIST || o->kind == HED_PTX_OPERAND_TUPLE) {
        for (uint32_t i = 0; i < o->count; i++)
            check_operand(&o->elems[i]);
    }
}

/* Every name is resolved, and ids have no gaps. */
static void
check_func(const struct hed_ptx_func *f)
{
    uint32_t n = 0;

    for (const struct hed_ptx_reg *r = f->regs; r; r = r->next)
        must(r->id == n++);
    must(n == f->nregs);
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind != HED_PTX_STMT_INST)
            continue;
        if (i->is_refused) {
            must(f->refused && i->form->refused && i->raw);
            continue;
        }
        for (int k = 0; k < i->noperands; k++)
            check_operand(&i->operands[k]);
    }
}

static void
check_round(const struct hed_ptx_module *m)
{
    struct hed_ptx_module again;
    struct hed_buf first;
    struct hed_buf second;

    hed_buf_init(&first, CEILING);
    hed_buf_init(&second, CEILING);
    hed_ptx_print(m, &first);
    if (first.err == 0) {
        hed_ptx_module_init(&again, 2 * CEILING);

        const int err = hed_ptx_parse(&again, hed_buf_cstr(&first), first.size);

        must(err == 0 || err == HED_ELIMIT);
        if (err == 0) {
            hed_ptx_print(&again, &second);
            must(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
            must(m->ninsts == again.ninsts && m->nrefused == again.nrefused);
        }
        hed_ptx_module_fini(&again);
    }
    hed_buf_fini(&first);
    hed_buf_fini(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hed_ptx_module m;
    struct hed_buf log;

    hed_ptx_module_init(&m, CEILING);
    hed_buf_init(&log, CEILING);

    const int err = hed_ptx_parse(&m, (const char *)data, size);

    must((m.nerrors == 0) == (err == 0) || err == HED_ELIMIT);
    hed_ptx_log(&m, &log);
    if (err == 0) {
        for (const struct hed_ptx_func *f = m.funcs; f; f = f->next)
            check_func(f);
        check_round(&m);
    }
    hed_buf_fini(&log);
    hed_ptx_module_fini(&m);
    return 0;
}
