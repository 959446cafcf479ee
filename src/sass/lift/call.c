/* Calls of the functions that the driver brings along: vprintf, __assertfail, malloc, free, the one
 * that sets conditions of graphs, and those of grid groups (grid.c). Their arguments lie in
 * registers from R4 on. See inside.h for the rules.
 *
 * The address comes from constant bank 4. Where the block that calls has loaded it, the function is
 * known; otherwise the number that stands for it (write.c) is compared.
 */
#include <stdio.h>
#include <string.h>

#include "sass/lift/family.h"
#include "sass/lift/inside.h"

#define ARGUMENTS 5
#define FIRST_ARGUMENT 4 /* the register */

/* What a function takes and gives: bytes of each argument, each at a register that its size
 * aligns. */
static const struct callee {
    const char *name;
    uint8_t result;
    uint8_t arguments[ARGUMENTS];
    /* Writes the function in the place of the call; NULL if PTX has such a function. */
    void (*write)(struct lift *l, const char *const *arguments, const char *result);
} callees[] = {
    {"vprintf", 4, {8, 8}, NULL},
    {"__assertfail", 0, {8, 8, 4, 8, 8}, NULL},
    {"malloc", 8, {8}, NULL},
    {"free", 0, {8}, NULL},
    {"cudaGraphSetConditional", 0, {8, 4}, NULL},
    {"__cuda_syscall_CGS_get_intrinsic_handle", 8, {4}, hed_lift_grid_handle},
    {"__cuda_syscall_CGS_sync", 4, {8, 4}, hed_lift_grid_sync},
    {"__cuda_syscall_CGS_get_size", 4, {8, 8, 8}, hed_lift_grid_size},
    {"__cuda_syscall_CGS_get_rank", 4, {8, 8, 8}, hed_lift_grid_rank},
};

static const struct callee *
find_callee(struct hed_bytes name)
{
    for (size_t i = 0; i < sizeof callees / sizeof callees[0]; i++)
        if (name.size == strlen(callees[i].name) &&
            memcmp(name.data, callees[i].name, name.size) == 0)
            return &callees[i];
    return NULL;
}

static void
note_use(struct lift *l, const struct callee *f)
{
    l->uses_printf |= strcmp(f->name, "vprintf") == 0;
    l->uses_assert |= strcmp(f->name, "__assertfail") == 0;
    l->uses_malloc |= strcmp(f->name, "malloc") == 0;
    l->uses_free |= strcmp(f->name, "free") == 0;
    l->uses_condition |= strcmp(f->name, "cudaGraphSetConditional") == 0;
}

/* What a call hands over. */
struct arguments {
    const char *values[ARGUMENTS];
    const char *names; /* "a0, a1" */
};

/* Wide registers are put together here, where all lanes come by. */
static struct arguments
fetch_arguments(struct lift *l, const struct callee *f)
{
    struct hed_sass_operand reg = {.kind = HED_SASS_REG, .reg = FIRST_ARGUMENT};
    struct arguments a = {.names = ""};

    for (unsigned i = 0; i < ARGUMENTS && f->arguments[i]; i++) {
        const bool wide = f->arguments[i] == 8;

        if (wide)
            reg.reg = (reg.reg + 1) & ~1u;
        a.values[i] = wide ? hed_lift_u64(l, &reg) : hed_lift_word(l, &reg);
        reg.reg += wide ? 2 : 1;
        a.names = hed_lift_text(l, "%s%sa%u", a.names, i ? ", " : "", i);
    }
    return a;
}

static void
write_extern_call(struct lift *l, const struct callee *f, const struct arguments *a,
                  const char *result)
{
    note_use(l, f);
    hed_buf_addf(&l->statements, "\t{\n");
    for (unsigned i = 0; i < ARGUMENTS && a->values[i]; i++) {
        hed_lift_calc(l, ".param .b%u a%u", f->arguments[i] * 8, i);
        hed_lift_calc(l, "st.param.b%u [a%u], %s", f->arguments[i] * 8, i, a->values[i]);
    }
    if (f->result) {
        hed_lift_calc(l, ".param .b%u r", f->result * 8);
        hed_lift_calc(l, "call (r), %s, (%s)", f->name, a->names);
        hed_lift_calc(l, "ld.param.b%u %s, [r]", f->result * 8, result);
    } else {
        hed_lift_calc(l, "call %s, (%s)", f->name, a->names);
    }
    hed_buf_addf(&l->statements, "\t}\n");
}

/* The call alone. */
static void
write_call(struct lift *l, const struct callee *f, const struct arguments *a)
{
    const struct hed_sass_operand result = {.kind = HED_SASS_REG, .reg = FIRST_ARGUMENT};
    const char *t = f->result ? hed_lift_temp(l, f->result == 8 ? 'q' : 't') : NULL;

    if (f->write)
        f->write(l, a->values, t);
    else
        write_extern_call(l, f, a, t);
    if (f->result == 8)
        hed_lift_calc(l, "mov.b64 {%s, %s}, %s", hed_lift_def_nth(l, &result, 0),
                      hed_lift_def_nth(l, &result, 1), t);
    else if (f->result)
        hed_lift_calc(l, "mov.b32 %s, %s", hed_lift_def(l, &result), t);
}

/* A call where a predicate holds, and a label behind it; always if there is none. */
static void
write_call_if(struct lift *l, const struct callee *f, const char *pred)
{
    const struct arguments a = fetch_arguments(l, f);
    const char *label;

    if (!pred) {
        write_call(l, f, &a);
        return;
    }
    label = hed_lift_label(l);
    hed_lift_calc(l, "@%s bra %s", hed_lift_inverse(l, pred), label);
    write_call(l, f, &a);
    hed_buf_addf(&l->statements, "%s:\n", label);
}

/* The call of each function of the pool whose number the register holds; another number traps. */
static void
call_by_value(struct lift *l, const struct hed_sass_operand *to)
{
    const char *value = hed_lift_temp(l, 't'), *rest = hed_lift_guard(l), *label;
    unsigned count = 0;

    hed_lift_calc(l, "mov.b32 %s, %s", value, hed_lift_word(l, to));
    if (!rest) {
        rest = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "setp.eq.b32 %s, 0, 0", rest);
    }
    for (uint32_t i = 0; i < l->code.pool.count; i++) {
        const struct lift_address *a = &l->code.pool.addresses[i];
        const struct callee *f = a->kind == LIFT_FUNCTION ? find_callee(a->name) : NULL;
        const char *x, *others;

        if (!f)
            continue;
        count++;
        x = hed_lift_temp(l, 'x');
        others = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "setp.eq.and.u32 %s, %s, %u, %s", x, value, LIFT_FUNCTION_NUMBER(a->index),
                      rest);
        hed_lift_calc(l, "setp.ne.and.u32 %s, %s, %u, %s", others, value,
                      LIFT_FUNCTION_NUMBER(a->index), rest);
        write_call_if(l, f, x);
        rest = others;
    }
    if (!l->code.taken_left_out) {
        if (count == 0 && !l->code.taken_count)
            hed_lift_refuse(l, "a call of a function that is not known");
        hed_lift_calc(l, "@%s trap", rest);
        return;
    }
    label = hed_lift_label(l);
    hed_lift_calc(l, "@%s bra %s", hed_lift_inverse(l, rest), label);
    hed_lift_call_far(l, to);
    hed_buf_addf(&l->statements, "%s:\n", label);
}

/* A function that the cubin does not have. */
static void
call_by_name(struct lift *l, const struct lift_address *a)
{
    const struct callee *f = a->kind == LIFT_FUNCTION ? find_callee(a->name) : NULL;

    if (!f)
        hed_lift_refuse(
            l, hed_lift_text(l, "a call of '%.*s'", (int)a->name.size, (const char *)a->name.data));
    else
        write_call_if(l, f, hed_lift_guard(l));
}

void
hed_lift_call(struct lift *l)
{
    const struct hed_sass_operand *to = hed_lift_operand(l, 0);
    const struct lift_patch *patch = hed_lift_patch(&l->code, l->index);
    bool constant;

    if (patch && !hed_lift_pred(l, 87, &constant) && constant) {
        call_by_name(l, &patch->to);
        return;
    }

    if (to->kind != HED_SASS_REG || hed_lift_pred(l, 87, &constant) || !constant) {
        hed_lift_refuse(l, "a call of a function that is not known");
        return;
    }

    const struct lift_note *n = &l->notes[to->reg];

    if (n->kind == LIFT_NOTE_LOADED && n->key >> 20 == 4 &&
        l->written[to->reg] == l->written[to->reg + 1]) {
        const struct lift_address a = hed_lift_address(&l->code.pool, n->key & 0xfffff);

        if (a.kind == LIFT_FUNCTION) {
            call_by_name(l, &a);
            return;
        }
    }
    call_by_value(l, to);
}
