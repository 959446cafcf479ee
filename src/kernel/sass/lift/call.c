/* Calls of the functions that the driver brings along: vprintf, __assertfail, malloc, free, the one
 * that sets conditions of graphs, those of grid groups (grid.c), and the device runtime. Their
 * arguments lie in registers from R4 on. See inside.h for the rules.
 *
 * The address comes from constant bank 4. Where the block that calls has loaded it, the function is
 * known; otherwise the number that stands for it (write.c) is compared.
 */
#include <stdio.h>
#include <string.h>

#include "base/device_calls.h"
#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"
#include "kernel/sass/lift/memory.h"

#define ARGUMENTS 8
#define DIM3 12          /* bytes of a dim3, in three registers */
#define FIRST_ARGUMENT 4 /* the register */

/* What a function takes and gives: bytes of each argument, each at a register that its size
 * aligns. */
struct callee {
    const char *name;
    const char *prefix; /* of its name; NULL for none */
    uint8_t result;
    uint8_t arguments[ARGUMENTS];
    uint8_t addresses; /* bit n: argument n is an address, maybe one of shared memory */
    /* Writes the function in the place of the call; NULL if PTX has such a function. */
    void (*write)(struct lift *l, const char *const *arguments, const char *result);
    bool is_device; /* of the device runtime */
    int number;     /* with is_device: enum hed_device_call_number */
};

static const struct callee callees[] = {
    {.name = "vprintf", .result = 4, .arguments = {8, 8}},
    {.name = "__assertfail", .result = 0, .arguments = {8, 8, 4, 8, 8}},
    {.name = "malloc", .result = 8, .arguments = {8}},
    {.name = "free", .result = 0, .arguments = {8}},
    {.name = "cudaGraphSetConditional", .result = 0, .arguments = {8, 4}},
    {.name = "__cuda_syscall_CGS_get_intrinsic_handle",
     .result = 8,
     .arguments = {4},
     .write = hed_lift_grid_handle},
    {.name = "__cuda_syscall_CGS_sync",
     .result = 4,
     .arguments = {8, 4},
     .write = hed_lift_grid_sync},
    {.name = "__cuda_syscall_CGS_get_size",
     .result = 4,
     .arguments = {8, 8, 8},
     .write = hed_lift_grid_size},
    {.name = "__cuda_syscall_CGS_get_rank",
     .result = 4,
     .arguments = {8, 8, 8},
     .write = hed_lift_grid_rank},
};

/* The system functions are called by the names that they have. */
const char *
hed_lift_device_prefix(unsigned number)
{
    return number == HED_DEVICE_SET_LAST_ERROR ? "__cuda_syscall_cnpv2" : "__cudaCDP2";
}

/* A call of the device runtime, as a function that machine code calls. */
static void
describe_device_call(int number, struct callee *out)
{
    const struct hed_device_call *c = &hed_device_calls[number];

    *out = (struct callee){.name = c->name,
                           .prefix = hed_lift_device_prefix((unsigned)number),
                           .result = c->result == 'w' ? 4 : 8,
                           .is_device = true,
                           .number = number};
    for (unsigned i = 0; i < ARGUMENTS && c->args[i]; i++) {
        out->arguments[i] = c->args[i] == 'd' ? DIM3 : c->args[i] == 'w' ? 4 : 8;
        out->addresses |= (uint8_t)((c->args[i] == 'p') << i);
    }
}

/* False if there is no such function. */
static bool
find_callee(struct hed_bytes name, struct callee *out)
{
    int number;

    for (size_t i = 0; i < sizeof callees / sizeof callees[0]; i++)
        if (name.size == strlen(callees[i].name) &&
            memcmp(name.data, callees[i].name, name.size) == 0) {
            *out = callees[i];
            return true;
        }
    number = name.size ? hed_device_call_find((const char *)name.data, name.size, false) : -1;
    if (number < 0)
        return false;
    describe_device_call(number, out);
    return true;
}

static void
note_use(struct lift *l, const struct callee *f)
{
    if (f->is_device) {
        l->uses_device |= UINT32_C(1) << f->number;
        return;
    }
    l->uses_printf |= strcmp(f->name, "vprintf") == 0;
    l->uses_assert |= strcmp(f->name, "__assertfail") == 0;
    l->uses_malloc |= strcmp(f->name, "malloc") == 0;
    l->uses_free |= strcmp(f->name, "free") == 0;
    l->uses_condition |= strcmp(f->name, "cudaGraphSetConditional") == 0;
}

/* What a call hands over: a value for each word of a dim3. */
struct arguments {
    const char *values[HED_DEVICE_WORDS];
    const char *names; /* "a0, a1" */
};

/* Wide registers are put together here, where all lanes come by. */
static struct arguments
fetch_arguments(struct lift *l, const struct callee *f)
{
    struct hed_sass_operand reg = {.kind = HED_SASS_REG, .reg = FIRST_ARGUMENT};
    struct arguments a = {.names = ""};
    unsigned n = 0;

    for (unsigned i = 0; i < ARGUMENTS && f->arguments[i]; i++) {
        const bool wide = f->arguments[i] == 8;
        const unsigned words = f->arguments[i] == DIM3 ? 3 : 1;

        if (wide)
            reg.reg = (reg.reg + 1) & ~1u;
        for (unsigned k = 0; k < words && n < HED_DEVICE_WORDS; k++) {
            a.values[n] = wide ? hed_lift_u64(l, &reg) : hed_lift_word(l, &reg);
            if (f->addresses >> i & 1)
                a.values[n] = hed_lift_generic_value(l, a.values[n]);
            reg.reg += wide ? 2 : 1;
            n++;
        }
        a.names = hed_lift_text(l, "%s%sa%u", a.names, i ? ", " : "", i);
    }
    return a;
}

/* Puts the n-th argument into a variable, and counts its values. */
static void
write_argument(struct lift *l, unsigned bytes, unsigned n, const char *const *values,
               unsigned *count)
{
    if (bytes != DIM3) {
        hed_lift_calc(l, ".param .b%u a%u", bytes * 8, n);
        hed_lift_calc(l, "st.param.b%u [a%u], %s", bytes * 8, n, values[(*count)++]);
        return;
    }
    hed_lift_calc(l, ".param .align 4 .b8 a%u[%u]", n, DIM3);
    for (unsigned k = 0; k < 3; k++)
        hed_lift_calc(l, "st.param.b32 [a%u+%u], %s", n, 4 * k, values[(*count)++]);
}

static void
write_extern_call(struct lift *l, const struct callee *f, const struct arguments *a,
                  const char *result)
{
    const char *prefix = f->prefix ? f->prefix : "";
    unsigned count = 0;

    note_use(l, f);
    hed_buf_addf(&l->statements, "\t{\n");
    for (unsigned i = 0; i < ARGUMENTS && f->arguments[i]; i++)
        write_argument(l, f->arguments[i], i, a->values, &count);
    if (f->result) {
        hed_lift_calc(l, ".param .b%u r", f->result * 8);
        hed_lift_calc(l, "call (r), %s%s, (%s)", prefix, f->name, a->names);
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
        struct callee f;
        const char *x, *others;

        if (a->kind != LIFT_FUNCTION || !find_callee(a->name, &f))
            continue;
        count++;
        x = hed_lift_temp(l, 'x');
        others = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "setp.eq.and.u32 %s, %s, %u, %s", x, value, LIFT_FUNCTION_NUMBER(a->index),
                      rest);
        hed_lift_calc(l, "setp.ne.and.u32 %s, %s, %u, %s", others, value,
                      LIFT_FUNCTION_NUMBER(a->index), rest);
        write_call_if(l, &f, x);
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
    struct callee f;
    const bool is_known = a->kind == LIFT_FUNCTION && find_callee(a->name, &f);

    /* A GPU's driver would have to link NVIDIA's device runtime to the text. */
    if (!is_known || (f.is_device && l->use != HED_SASS_FOR_CPU))
        hed_lift_refuse(
            l, hed_lift_text(l, "a call of '%.*s'", (int)a->name.size, (const char *)a->name.data));
    else
        write_call_if(l, &f, hed_lift_guard(l));
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
