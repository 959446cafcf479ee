/* Functions that are lifted when they are first called. See inside.h.
 *
 * A kernel may choose among hundreds of functions by their addresses, of which it calls one or two.
 * Such a function is a module of its own. All code shares the registers of the machine, so they
 * travel in memory, with the other things that the function has to know:
 *
 *   kernel: registers -> heddle_registers, call, heddle_registers -> registers
 *   function: registers <- its parameter points there; and back before it returns
 */
#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

#define REGISTERS 255
#define UNIFORMS 63
#define PREDICATES 7

/* Where things are, in bytes. */
enum {
    AT_REGISTER = 0,
    AT_UNIFORM = 1024,
    AT_PREDICATE = 1280,
    AT_UNIFORM_PREDICATE = 1312,
    AT_LOCAL = 1344, /* the address of the thread's local memory */
    AT_BACK = 1352,  /* the number of the place behind the call */
    FRAME_BYTES = 1360,
};

#define ALL_PREDICATES 0x7f7fu /* by lift_pred_bit */

/* ---- all registers --------------------------------------------------------------------------- */

static void
store_registers(struct lift *l, struct hed_buf *b, const char *frame)
{
    for (unsigned i = 0; i < REGISTERS; i++)
        hed_buf_addf(b, "\tst.local.b32 [%s+%u], %%r%u;\n", frame, AT_REGISTER + 4 * i, i);
    for (unsigned i = 0; i < UNIFORMS; i++)
        hed_buf_addf(b, "\tst.local.b32 [%s+%u], %%u%u;\n", frame, AT_UNIFORM + 4 * i, i);
    for (unsigned i = 0; i < 2 * PREDICATES; i++) {
        const bool uniform = i >= PREDICATES;
        const unsigned n = i % PREDICATES;

        hed_buf_addf(b, "\tselp.b32 %%word, 1, 0, %%%c%u;\n", uniform ? 'v' : 'p', n);
        hed_buf_addf(b, "\tst.local.b32 [%s+%u], %%word;\n", frame,
                     (uniform ? AT_UNIFORM_PREDICATE : AT_PREDICATE) + 4 * n);
    }
    l->pred_uses[l->index] |= ALL_PREDICATES;
}

static void
load_registers(struct hed_buf *b, const char *frame)
{
    for (unsigned i = 0; i < REGISTERS; i++)
        hed_buf_addf(b, "\tld.local.b32 %%r%u, [%s+%u];\n", i, frame, AT_REGISTER + 4 * i);
    for (unsigned i = 0; i < UNIFORMS; i++)
        hed_buf_addf(b, "\tld.local.b32 %%u%u, [%s+%u];\n", i, frame, AT_UNIFORM + 4 * i);
    for (unsigned i = 0; i < 2 * PREDICATES; i++) {
        const bool uniform = i >= PREDICATES;
        const unsigned n = i % PREDICATES;

        hed_buf_addf(b, "\tld.local.b32 %%word, [%s+%u];\n", frame,
                     (uniform ? AT_UNIFORM_PREDICATE : AT_PREDICATE) + 4 * n);
        hed_buf_addf(b, "\tsetp.ne.u32 %%%c%u, %%word, 0;\n", uniform ? 'v' : 'p', n);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The function may have written any register. */
static void
forget_registers(struct lift *l)
{
    for (unsigned i = 0; i < REGISTERS; i++)
        hed_lift_wrote(l, i);
    for (unsigned i = 0; i < UNIFORMS; i++)
        hed_lift_wrote(l, 256 + i);
    for (unsigned i = 0; i < sizeof l->carries / sizeof l->carries[0]; i++)
        l->carries[i] = 0;
}

void
hed_lift_call_far(struct lift *l, const struct hed_sass_operand *to)
{
    const char *address = hed_lift_u64(l, to), *q = hed_lift_temp(l, 'q');
    struct hed_buf *b = &l->statements;

    if (l->use != HED_SASS_FOR_CPU) {
        hed_lift_refuse(l, "a call of one of many functions");
        return;
    }
    l->calls_far = true;
    l->uses_local = true;
    store_registers(l, b, "heddle_registers");
    hed_lift_calc(l, "mov.u64 %s, %s", q, hed_lift_local_name(l));
    hed_lift_calc(l, "st.local.b64 [heddle_registers+%d], %s", AT_LOCAL, q);
    hed_lift_calc(l, "mov.b32 %%word, 0x%x", hed_lift_place_number(&l->code, l->index + 1));
    hed_lift_calc(l, "st.local.b32 [heddle_registers+%d], %%word", AT_BACK);
    q = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "mov.u64 %s, heddle_registers", q);
    hed_buf_addf(b, "\t{\n");
    hed_lift_calc(l, ".param .b64 a0");
    hed_lift_calc(l, "st.param.b64 [a0], %s", q);
    hed_lift_calc(l, "call %s, (a0), heddle_call", address);
    hed_buf_addf(b, "\t}\n");
    load_registers(b, "heddle_registers");
    forget_registers(l);
}

/* ---- the function ---------------------------------------------------------------------------- */

void
hed_lift_declare_far(const struct lift *l, struct hed_buf *b)
{
    if (!l->calls_far && !l->is_function)
        return;
    hed_buf_addf(b, "\t.reg .b64 %%frame, %%local;\n\t.reg .b32 %%back, %%word;\n");
    if (!l->calls_far)
        return;
    hed_buf_addf(b, "\t.local .align 16 .b8 heddle_registers[%d];\n", FRAME_BYTES);
    hed_buf_addf(b, "heddle_call: .callprototype ()_ (.param .b64 _);\n");
}

void
hed_lift_enter_function(struct hed_buf *b)
{
    hed_buf_addf(b, "\tld.param.b64 %%frame, [heddle_frame];\n");
    hed_buf_addf(b, "\tld.local.b64 %%local, [%%frame+%d];\n", AT_LOCAL);
    hed_buf_addf(b, "\tld.local.b32 %%back, [%%frame+%d];\n", AT_BACK);
    load_registers(b, "%frame");
}

void
hed_lift_leave_function(struct lift *l)
{
    store_registers(l, &l->statements, "%frame");
    hed_lift_calc(l, "ret");
}
