/* Declarations of the lifted text: variables, parameters, registers. See inside.h. */
#include <inttypes.h>
#include <string.h>

#include "base/device_calls.h"
#include "base/number.h"
#include "base/search.h"
#include "kernel/sass/lift/inside.h"

#define PTX_HEAD ".version 8.8\n.target sm_%u\n.address_size 64\n\n"
#define PARAM_ALIGN_MAX 256u

static void
write_name(struct hed_buf *b, struct hed_bytes name)
{
    for (size_t i = 0; i < name.size; i++) {
        const char c = (char)name.data[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9' && i > 0) || c == '_' || c == '$';

        hed_buf_add(b, plain ? &c : "_", 1);
    }
}

/* Linked code has variables of one name that nobody can find by it: a number tells them apart. */
static void
write_symbol(struct hed_buf *b, const struct hed_sass_program *p, const struct hed_sass_symbol *s)
{
    write_name(b, s->name);
    if (!s->visible && s->repeated)
        hed_buf_addf(b, "$heddle%u", (unsigned)(s - p->symbols));
}

/* Inside of a kernel it would mean its shared memory, say. */
static bool
is_name_of_ours(struct hed_bytes name)
{
    static const char prefix[] = "heddle_";

    return name.size >= sizeof prefix - 1 && memcmp(name.data, prefix, sizeof prefix - 1) == 0;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* A GPU's driver finds variables by their names, so each symbol is a variable there. This is the
 * one that begins last before an offset, if it holds it. */
const struct hed_sass_symbol *
hed_lift_symbol_at(const struct hed_sass_program *p, uint32_t var, int64_t offset)
{
    const struct hed_sass_symbol behind = {.var = var, .at = (uint64_t)offset + 1}, *s;
    size_t i;

    if (offset < 0)
        return NULL;
    i = hed_lower_bound(&behind, p->symbols, p->symbol_count, sizeof behind,
                        hed_lift_compare_symbols);
    s = i ? &p->symbols[i - 1] : NULL;
    return s && s->var == var && (uint64_t)offset - s->at < s->size ? s : NULL;
}

const char *
hed_lift_variable(struct lift *l, uint32_t var, int64_t offset)
{
    const struct hed_sass_symbol *s;
    struct hed_buf name;
    const char *text;

    if (l->use == HED_SASS_FOR_CPU)
        return hed_lift_text(l, "%s+%" PRId64, l->program->vars[var].name, offset);
    s = hed_lift_symbol_at(l->program, var, offset);
    if (!s) {
        hed_lift_refuse(l, "a variable without a name");
        return "0";
    }
    if (s->shared) {
        hed_lift_refuse(l, "a variable that shares its bytes with another");
        return "0";
    }
    if (is_name_of_ours(s->name)) {
        hed_lift_refuse(l, "a variable with a name that the text needs");
        return "0";
    }
    hed_buf_init(&name, LIFT_TEXT_MAX);
    write_symbol(&name, l->program, s);
    text = hed_lift_text(l, "%s+%" PRId64, hed_buf_cstr(&name), offset - (int64_t)s->at);
    hed_buf_fini(&name);
    return text;
}

static void
declare_pieces(const struct hed_sass_program *p, struct hed_buf *b)
{
    for (uint32_t i = 0; i < p->var_count; i++) {
        const struct hed_sass_var *v = &p->vars[i];

        hed_buf_addf(b, ".%s%s .align %u .b8 %s[%" PRIu64 "];\n", v->constant ? "const" : "global",
                     v->managed ? " .attribute(.managed)" : "", v->align, v->name, v->size);
    }
}

/* The first pointer at a place of a piece or behind it: an index. */
static uint32_t
first_pointer(const struct hed_sass_program *p, uint32_t var, uint64_t at)
{
    const struct hed_sass_pointer key = {.var = var, .at = at};

    return (uint32_t)hed_lower_bound(&key, p->pointers, p->pointer_count, sizeof key,
                                     hed_lift_compare_pointers);
}

static const struct hed_sass_pointer *
noted_pointer(const struct hed_sass_program *p, uint32_t var, uint64_t at)
{
    const uint32_t i = first_pointer(p, var, at);

    return i < p->pointer_count && p->pointers[i].var == var && p->pointers[i].at == at
               ? &p->pointers[i]
               : NULL;
}

static bool
has_pointers(const struct hed_sass_program *p, const struct hed_sass_symbol *s)
{
    const uint32_t i = first_pointer(p, s->var, s->at);

    return i < p->pointer_count && p->pointers[i].var == s->var &&
           p->pointers[i].at - s->at < s->size;
}

/* Words of eight bytes, some of them addresses of other variables. */
static void
write_init_words(const struct hed_sass_program *p, const struct hed_sass_symbol *s,
                 struct hed_buf *b)
{
    const struct hed_bytes init = p->vars[s->var].init;

    for (uint64_t i = 0; i < s->size / 8 && !b->err; i++) {
        const struct hed_sass_pointer *q = noted_pointer(p, s->var, s->at + i * 8);
        const bool is_number = q && q->to == HED_SASS_NUMBER;
        const struct hed_sass_symbol *to =
            q && !is_number ? hed_lift_symbol_at(p, q->to, q->addend) : NULL;
        const uint8_t *word = hed_bytes_at(init, s->at + i * 8, 8);

        hed_buf_addf(b, "%s", i ? "," : "");
        if (to) {
            hed_buf_addf(b, "generic(");
            write_symbol(b, p, to);
            hed_buf_addf(b, ")+%" PRId64, q->addend - (int64_t)to->at);
        } else if (is_number) {
            hed_buf_addf(b, "%" PRId64, q->addend);
        } else {
            hed_buf_addf(b, "%" PRIu64, word ? hed_load_u64(word) : 0);
        }
    }
}

static void
write_init_bytes(struct hed_bytes init, struct hed_buf *b)
{
    for (size_t i = 0; i < init.size && !b->err; i++)
        hed_buf_addf(b, "%s%u", i ? "," : "", init.data[i]);
}

static void
declare_symbol(const struct hed_sass_program *p, const struct hed_sass_symbol *s, struct hed_buf *b)
{
    const struct hed_sass_var *v = &p->vars[s->var];
    const struct hed_bytes init = hed_bytes_cut(v->init, s->at, s->size);
    const bool words = s->size % 8 == 0 && has_pointers(p, s);

    hed_buf_addf(b, "%s.%s%s .align %u .%s ", s->visible ? ".visible " : "",
                 v->constant ? "const" : "global", v->managed ? " .attribute(.managed)" : "",
                 v->constant ? hed_lift_constant_align(s) : LIFT_ALIGN_MAX, words ? "u64" : "b8");
    write_symbol(b, p, s);
    hed_buf_addf(b, "[%" PRIu64 "]", words ? s->size / 8 : s->size);
    if (words || init.size)
        hed_buf_addf(b, " = {");
    if (words)
        write_init_words(p, s, b);
    else
        write_init_bytes(init, b);
    hed_buf_addf(b, words || init.size ? "};\n" : ";\n");
}

/* A variable is declared before another one's value mentions it. */
static void
declare_symbols(const struct hed_sass_program *p, struct hed_buf *b)
{
    for (uint32_t i = 0; i < p->symbol_count; i++)
        if (p->symbols[i].size && !has_pointers(p, &p->symbols[i]))
            declare_symbol(p, &p->symbols[i], b);
    for (uint32_t i = 0; i < p->symbol_count; i++)
        if (p->symbols[i].size && has_pointers(p, &p->symbols[i]))
            declare_symbol(p, &p->symbols[i], b);
}

void
hed_lift_declare_module(const struct hed_sass_program *p, enum hed_sass_for use, struct hed_buf *b)
{
    hed_buf_addf(b, PTX_HEAD,
                 p->cubin.arch.number > HED_SASS_PTX_ARCH ? p->cubin.arch.number
                                                          : HED_SASS_PTX_ARCH);
    if (use == HED_SASS_FOR_CPU) {
        declare_pieces(p, b);
        return;
    }
    declare_symbols(p, b);
    hed_buf_addf(b, ".extern .shared .align 1024 .b8 heddle_dynamic[];\n");
}

const char *
hed_lift_shared_name(struct lift *l)
{
    l->uses_shared = true;
    return l->code.kernel->shared && !l->is_function ? "heddle_shared" : "heddle_dynamic";
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* A cubin that does not describe its parameters has one that is all of them. */
static struct hed_cubin_param
param_of(const struct hed_cubin_kernel *k, uint32_t i)
{
    return k->param_count ? k->params[i]
                          : (struct hed_cubin_param){.offset = 0, .size = k->param_bytes};
}

static uint32_t
param_count(const struct hed_cubin_kernel *k)
{
    return k->param_count ? k->param_count : k->param_bytes != 0;
}

const char *
hed_lift_param(struct lift *l, int64_t at, unsigned bytes)
{
    const struct hed_cubin_kernel *k = l->code.kernel;

    if (l->is_function)
        return NULL; /* a function does not know whose parameters they are */
    for (uint32_t i = 0; i < param_count(k); i++) {
        const struct hed_cubin_param p = param_of(k, i);
        const int64_t inside = at - (int64_t)p.offset;

        if (inside >= 0 && hed_range_fits((uint64_t)inside, bytes, p.size))
            return hed_lift_text(l, "heddle_param%u+%" PRId64, i, inside);
    }
    return NULL;
}

/* The largest alignment that puts a parameter behind the one before it at its offset; 0 if there
 * is none. */
static uint32_t
align_of_param(uint64_t end, uint32_t offset)
{
    uint32_t align = PARAM_ALIGN_MAX;

    while (align && hed_round_up(end, (uint64_t)align) != offset)
        align /= 2;
    return align;
}

/* A parameter may be aligned to more than its bank is: it begins with a gap. On our CPU, which lays
 * parameters out as the cubin says, a parameter that nobody reads fills it. A GPU's driver lays
 * them out anew, by their alignment in the bank, and our text knows them by their names. */
static uint32_t
align_of_gap(struct lift *l, uint64_t end, uint32_t offset)
{
    const uint32_t bank = l->code.kernel->param_bank;
    const uint32_t align =
        l->use == HED_SASS_FOR_GPU ? align_of_param(bank + end, bank + offset) : offset > end;

    if (!align)
        hed_lift_refuse(l, "parameters with gaps");
    return align;
}

static void
declare_params(struct lift *l, struct hed_buf *b)
{
    const struct hed_cubin_kernel *k = l->code.kernel;
    const char *comma = "";
    uint64_t end = 0;

    for (uint32_t i = 0; i < param_count(k); i++) {
        const struct hed_cubin_param p = param_of(k, i);
        const bool has_gap = i ? !align_of_param(end, p.offset) : p.offset != 0;
        uint32_t align = has_gap ? align_of_gap(l, end, p.offset) : 0;

        if (has_gap && !align)
            return;
        if (has_gap && l->use == HED_SASS_FOR_CPU) {
            hed_buf_addf(b, "%s.param .align 1 .b8 heddle_gap%u[%" PRIu64 "]", comma, i,
                         p.offset - end);
            comma = ", ";
            end = p.offset;
            align = 0;
        }
        if (!align)
            align = i || has_gap ? align_of_param(end, p.offset) : 16;
        hed_buf_addf(b, "%s.param .align %u .b8 heddle_param%u[%u]", comma, align, i, p.size);
        comma = ", ";
        end = (uint64_t)p.offset + p.size;
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Bank 2, if a register chooses a place in it. */
static void
declare_literals(const struct lift *l, struct hed_buf *b)
{
    if (!l->uses_literals || l->use == HED_SASS_FOR_CPU)
        return;
    hed_buf_addf(b, ".const .align 16 .b8 heddle_literals%u[%zu] = {", l->number,
                 l->code.literals.bytes.size);
    write_init_bytes(l->code.literals.bytes, b);
    hed_buf_addf(b, "};\n");
}

static void
declare_device_call(const struct hed_device_call *call, unsigned number, struct hed_buf *b)
{
    hed_buf_addf(b, ".extern .func (.param .b%d result) %s%s(", call->result == 'w' ? 32 : 64,
                 hed_lift_device_prefix(number), call->name);
    for (unsigned i = 0; call->args[i]; i++)
        hed_buf_addf(b,
                     call->args[i] == 'd'   ? "%s.param .align 4 .b8 a%u[12]"
                     : call->args[i] == 'w' ? "%s.param .b32 a%u"
                                            : "%s.param .b64 a%u",
                     i ? ", " : "", i);
    hed_buf_addf(b, ");\n");
}

static void
declare_functions(const struct lift *l, struct hed_buf *b)
{
    for (unsigned i = 0; i < HED_DEVICE_CALLS; i++)
        if (l->uses_device >> i & 1)
            declare_device_call(&hed_device_calls[i], i, b);
    if (l->uses_printf)
        hed_buf_addf(b,
                     ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 "
                     "arguments);\n");
    if (l->uses_assert)
        hed_buf_addf(
            b, ".extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 "
               "line, .param .b64 function, .param .b64 size);\n");
    if (l->uses_malloc)
        hed_buf_addf(b, ".extern .func (.param .b64 result) malloc(.param .b64 size);\n");
    if (l->uses_free)
        hed_buf_addf(b, ".extern .func free(.param .b64 place);\n");
    if (l->uses_condition)
        hed_buf_addf(b, ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 "
                        "value);\n");
}

static void
write_dims(struct hed_buf *b, const char *word, const uint32_t v[3])
{
    if (v[0])
        hed_buf_addf(b, ".%s %u, %u, %u\n", word, v[0], v[1] ? v[1] : 1, v[2] ? v[2] : 1);
}

/* The text may need more registers than the machine code did. A block that could be launched must
 * still fit: 65536 registers are shared by up to 1024 threads, in steps of 8 for each. */
static uint32_t
most_registers(const struct hed_cubin_kernel *k)
{
    const uint32_t least = 64, most = 255;
    const uint32_t n = (uint32_t)hed_round_up((uint64_t)k->registers, (uint64_t)8);

    return n < least ? least : n > most ? most : n;
}

static void
write_signature(struct lift *l, struct hed_buf *b)
{
    const struct hed_cubin_kernel *k = l->code.kernel;

    if (l->is_function) {
        hed_buf_addf(b, ".visible .func heddle_function(.param .b64 heddle_frame)\n");
        return;
    }
    hed_buf_addf(b, ".visible .entry ");
    write_name(b, l->code.name);
    hed_buf_addf(b, "(");
    declare_params(l, b);
    hed_buf_addf(b, ")\n");
    if (k->required_threads[0])
        write_dims(b, "reqntid", k->required_threads);
    else if (k->max_threads[0])
        write_dims(b, "maxntid", k->max_threads);
    else if (l->use == HED_SASS_FOR_GPU)
        hed_buf_addf(b, ".maxnreg %u\n", most_registers(k));
}

static void
declare_registers(const struct lift *l, struct hed_buf *b)
{
    hed_buf_addf(b, "\t.reg .b32 %%r<256>, %%u<64>, %%result, %%members, %%t<%u>;\n",
                 l->temps[0] + 1);
    hed_buf_addf(b, "\t.reg .b64 %%d<256>, %%e<64>, %%q<%u>;\n", l->temps[1] + 1);
    hed_buf_addf(b, "\t.reg .pred %%p<8>, %%v<8>, %%x<%u>;\n", l->temps[2] + 1);
    hed_buf_addf(b, "\t.reg .b16 %%h<%u>;\n", l->temps[3] + 1);
    if (l->barriers)
        hed_buf_addf(b, "\t.reg .b32 %%b<16>;\n");
    hed_lift_declare_local(l, b);
}

/* Dynamic shared memory follows the static part, so one name is enough for both. */
static void
declare_shared(const struct lift *l, struct hed_buf *b)
{
    const uint64_t size = l->code.kernel->shared;

    if (size && !l->is_function)
        hed_buf_addf(b, "\t.shared .align 1024 .b8 heddle_shared[%" PRIu64 "];\n", size);
}

void
hed_lift_declare_kernel(struct lift *l, struct hed_buf *b)
{
    declare_literals(l, b);
    declare_functions(l, b);
    if (l->use == HED_SASS_FOR_CPU && l->uses_shared && (!l->code.kernel->shared || l->is_function))
        hed_buf_addf(b, ".extern .shared .align 1024 .b8 heddle_dynamic[];\n");
    write_signature(l, b);
    hed_buf_addf(b, "{\n");
    declare_shared(l, b);
    declare_registers(l, b);
    hed_lift_declare_far(l, b);
    if (l->is_function)
        hed_lift_enter_function(b);
}
