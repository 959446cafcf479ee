/* The printer. See print.h. */
#include "kernel/ptx/text/print.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "kernel/ptx/ptx.h"

static const char *const linkages[] = {"", ".extern ", ".visible ", ".weak ", ".common "};

static void
add_ptx_text(struct hed_buf *b, const char *text)
{
    hed_buf_add(b, text, strlen(text));
}

static void print_operand(const struct hed_ptx_operand *o, struct hed_buf *b);

static void
print_list(const struct hed_ptx_operand *o, uint32_t count, const char *open, const char *close,
           struct hed_buf *b)
{
    add_ptx_text(b, open);
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            add_ptx_text(b, ", ");
        print_operand(&o[i], b);
    }
    add_ptx_text(b, close);
}

static void
print_sel(unsigned sel, struct hed_buf *b)
{
    if (!sel)
        return;
    if (!(sel & HED_PTX_SEL_VIDEO)) {
        hed_buf_addf(b, ".%c", "xyzw"[(sel - 1) % 4]);
        return;
    }

    const int digits = (int)(sel >> 12 & 3) + 1;

    add_ptx_text(b, sel & HED_PTX_SEL_HALF ? ".h" : ".b");
    for (int i = digits; i-- > 0;)
        hed_buf_addf(b, "%u", sel >> (3 * i) & 7);
}

static void
print_offset(int64_t offset, struct hed_buf *b)
{
    if (offset)
        hed_buf_addf(b, "+%" PRId64, offset);
}

/* Prints a REG, VAR or INT operand, or the base of a MEM operand. */
static void
print_base(const struct hed_ptx_operand *o, unsigned kind, struct hed_buf *b)
{
    if (kind == HED_PTX_OPERAND_REG)
        add_ptx_text(b, o->reg->name);
    else if (kind == HED_PTX_OPERAND_VAR)
        add_ptx_text(b, o->var->name);
    else if (kind == HED_PTX_OPERAND_FUNC)
        add_ptx_text(b, o->func->name);
    else if (kind == HED_PTX_OPERAND_SREG)
        add_ptx_text(b, hed_ptx_sregs[o->sreg].text);
    else
        hed_buf_addf(b, "%" PRId64, (int64_t)o->bits);
    print_sel(o->sel, b);
    print_offset(o->offset, b);
}

static void
print_operand(const struct hed_ptx_operand *o, struct hed_buf *b)
{
    if (o->negated)
        add_ptx_text(b, o->kind == HED_PTX_OPERAND_REG && o->reg->type != HED_PTX_TYPE_PRED ? "-"
                                                                                            : "!");
    switch ((enum hed_ptx_operand_kind)o->kind) {
    case HED_PTX_OPERAND_REG:
    case HED_PTX_OPERAND_SREG:
    case HED_PTX_OPERAND_INT:
    case HED_PTX_OPERAND_VAR:
    case HED_PTX_OPERAND_FUNC:
        print_base(o, o->kind, b);
        break;
    case HED_PTX_OPERAND_FLOAT:
        if (o->is_f32)
            hed_buf_addf(b, "0f%08" PRIX64, o->bits);
        else
            hed_buf_addf(b, "0d%016" PRIX64, o->bits);
        break;
    case HED_PTX_OPERAND_LABEL:
        add_ptx_text(b, o->label->name);
        break;
    case HED_PTX_OPERAND_TABLE:
        add_ptx_text(b, o->table->name);
        break;
    case HED_PTX_OPERAND_MEM:
        add_ptx_text(b, "[");
        print_base(o, o->base, b);
        add_ptx_text(b, o->unified ? "].unified" : "]");
        break;
    case HED_PTX_OPERAND_TUPLE:
        add_ptx_text(b, "[");
        print_base(&o->elems[0], o->elems[0].base, b);
        add_ptx_text(b, ", ");
        print_list(o->elems + 1, o->count - 1, "", "]", b);
        break;
    case HED_PTX_OPERAND_VEC:
        print_list(o->elems, o->count, "{", "}", b);
        break;
    case HED_PTX_OPERAND_PAIR:
        print_operand(&o->elems[0], b);
        add_ptx_text(b, "|");
        print_operand(&o->elems[1], b);
        break;
    case HED_PTX_OPERAND_LIST:
        print_list(o->elems, o->count, "(", ")", b);
        break;
    case HED_PTX_OPERAND_SINK:
    case HED_PTX_OPERAND_NONE:
        add_ptx_text(b, "_");
        break;
    }
}

static void
print_call(const struct hed_ptx_inst *i, struct hed_buf *b)
{
    const struct hed_ptx_operand *o = i->operands;

    if (o[0].count) {
        print_operand(&o[0], b);
        add_ptx_text(b, ", ");
    }
    print_operand(&o[1], b);
    if (o[2].count || i->noperands > 3) {
        add_ptx_text(b, ", ");
        print_operand(&o[2], b);
    }
    if (i->noperands > 3) {
        add_ptx_text(b, ", ");
        print_operand(&o[3], b);
    }
}

void
hed_ptx_print_inst(const struct hed_ptx_inst *i, struct hed_buf *b)
{
    if (i->guard)
        hed_buf_addf(b, "@%s%s ", i->guard_negated ? "!" : "", i->guard->name);
    if (i->is_refused) {
        add_ptx_text(b, i->raw);
        add_ptx_text(b, ";");
        return;
    }
    add_ptx_text(b, i->form->text);
    if (i->noperands)
        add_ptx_text(b, " ");
    if (i->form->op == HED_PTX_OP_CALL)
        print_call(i, b);
    else
        print_list(i->operands, i->noperands, "", "", b);
    add_ptx_text(b, ";");
}

/* A declaration up to and including its dimensions. */
static void
print_declarator(const struct hed_ptx_var *v, struct hed_buf *b)
{
    add_ptx_text(b, linkages[v->linkage]);
    hed_buf_addf(b, ".%s ", hed_ptx_space_text(v->space));
    if (v->managed || v->has_uuid) {
        add_ptx_text(b, ".attribute(");
        add_ptx_text(b, v->managed ? ".managed" : "");
        add_ptx_text(b, v->managed && v->has_uuid ? ", " : "");
        if (v->has_uuid)
            hed_buf_addf(b, ".unified(%" PRIu64 ", %" PRIu64 ")", v->uuid[0], v->uuid[1]);
        add_ptx_text(b, ") ");
    }
    if (v->said_align)
        hed_buf_addf(b, ".align %u ", v->align);
    if (v->vec)
        hed_buf_addf(b, ".v%u ", v->vec);
    hed_buf_addf(b, ".%s ", hed_ptx_types[v->type].text);
    if (v->is_ptr) {
        add_ptx_text(b, ".ptr ");
        if (v->ptr_space)
            hed_buf_addf(b, ".%s ", hed_ptx_space_text(v->ptr_space));
        if (v->ptr_align)
            hed_buf_addf(b, ".align %u ", v->ptr_align);
    }
    add_ptx_text(b, v->name);
    for (int i = 0; i < v->ndims; i++) {
        if (i == 0 && v->unsized)
            add_ptx_text(b, "[]");
        else
            hed_buf_addf(b, "[%" PRIu64 "]", v->dims[i]);
    }
}

static void
print_reloc(const struct hed_ptx_reloc *r, struct hed_buf *b)
{
    const char *name = r->var ? r->var->name : r->func->name;

    if (r->mask)
        hed_buf_addf(b, "0x%" PRIx64 "(", r->mask);
    hed_buf_addf(b, r->generic ? "generic(%s)" : "%s", name);
    print_offset(r->addend, b);
    if (r->mask)
        add_ptx_text(b, ")");
}

/* A walk over the elements of an initialiser. */
struct walk {
    const struct hed_ptx_var *v;
    const struct hed_ptx_reloc *next; /* the next address */
    uint64_t at;                      /* bytes */
    unsigned width;                   /* bytes of an element */
    int levels;
};

static void
print_element(struct walk *w, struct hed_buf *b)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < w->width && i < 8 && w->at + i < w->v->init_size; i++)
        bits |= (uint64_t)w->v->init[w->at + i] << (8 * i);
    if (w->next && w->next->at == w->at) {
        print_reloc(w->next, b);
        w->next = w->next->next;
    } else if (w->v->type == HED_PTX_TYPE_F32) {
        hed_buf_addf(b, "0f%08" PRIX64, bits);
    } else if (w->v->type == HED_PTX_TYPE_F64) {
        hed_buf_addf(b, "0d%016" PRIX64, bits);
    } else {
        hed_buf_addf(b, "%" PRIu64, bits);
    }
    w->at += w->width;
}

static void
print_level(struct walk *w, int level, struct hed_buf *b)
{
    const bool is_vec = w->v->vec && level == w->v->ndims;
    const uint64_t count = is_vec ? w->v->vec : w->v->dims[level];

    add_ptx_text(b, "{");
    for (uint64_t i = 0; i < count && w->at < w->v->init_size && !b->err; i++) {
        if (i)
            add_ptx_text(b, ", ");
        if (level + 1 < w->levels)
            print_level(w, level + 1, b);
        else
            print_element(w, b);
    }
    add_ptx_text(b, "}");
}

static void
print_var(const struct hed_ptx_var *v, struct hed_buf *b)
{
    struct walk w = {.v = v, .next = v->relocs};

    print_declarator(v, b);
    w.width = (hed_ptx_types[v->type].bits + 7u) / 8;
    w.levels = v->ndims + (v->vec ? 1 : 0);
    if (v->init_size) {
        add_ptx_text(b, " = ");
        if (w.levels)
            print_level(&w, 0, b);
        else
            print_element(&w, b);
    }
    add_ptx_text(b, ";\n");
}

static void
print_params(const struct hed_ptx_var *v, struct hed_buf *b)
{
    add_ptx_text(b, "(");
    for (; v; v = v->next) {
        print_declarator(v, b);
        if (v->next)
            add_ptx_text(b, ", ");
    }
    add_ptx_text(b, ")");
}

static void
print_three(const char *name, const uint32_t n[3], struct hed_buf *b)
{
    if (n[0])
        hed_buf_addf(b, "\n.%s %u, %u, %u", name, n[0], n[1], n[2]);
}

static void
print_number_directive(const char *name, uint32_t n, struct hed_buf *b)
{
    if (n)
        hed_buf_addf(b, "\n.%s %u", name, n);
}

static void
print_head(const struct hed_ptx_func *f, struct hed_buf *b)
{
    const struct hed_ptx_directives *d = &f->directives;

    add_ptx_text(b, linkages[f->linkage]);
    add_ptx_text(b, f->is_entry ? ".entry " : ".func ");
    if (f->sig.nrets) {
        print_params(f->sig.rets, b);
        add_ptx_text(b, " ");
    }
    add_ptx_text(b, f->name);
    print_params(f->sig.params, b);
    print_three("maxntid", d->maxntid, b);
    print_three("reqntid", d->reqntid, b);
    print_three("reqnctapercluster", d->reqnctapercluster, b);
    print_number_directive("minnctapersm", d->minnctapersm, b);
    print_number_directive("maxnctapersm", d->maxnctapersm, b);
    print_number_directive("maxnreg", d->maxnreg, b);
    print_number_directive("maxclusterrank", d->maxclusterrank, b);
    add_ptx_text(b, d->explicitcluster ? "\n.explicitcluster" : "");
    add_ptx_text(b, d->blocksareclusters ? "\n.blocksareclusters" : "");
    add_ptx_text(b, f->sig.noreturn ? "\n.noreturn" : "");
    for (int i = 0; i < d->npragmas; i++)
        hed_buf_addf(b, "\n.pragma \"%s\";", d->pragmas[i]);
}

static void
print_regs(const struct hed_ptx_regs *r, struct hed_buf *b)
{
    add_ptx_text(b, ".reg ");
    if (r->vec)
        hed_buf_addf(b, ".v%u ", r->vec);
    hed_buf_addf(b, ".%s ", hed_ptx_types[r->type].text);
    for (; r; r = r->joined) {
        add_ptx_text(b, r->name);
        if (r->is_range)
            hed_buf_addf(b, "<%u>", r->count);
        add_ptx_text(b, r->joined ? ", " : ";\n");
    }
}

static void
print_target_table(const struct hed_ptx_table *t, struct hed_buf *b)
{
    static const char *const names[] = {".branchtargets ", ".calltargets ", ".callprototype "};

    hed_buf_addf(b, "%s: %s", t->name, names[t->kind]);
    if (t->kind == HED_PTX_TABLE_PROTO) {
        if (t->sig.nrets)
            print_params(t->sig.rets, b);
        add_ptx_text(b, " _ ");
        print_params(t->sig.params, b);
        add_ptx_text(b, t->sig.noreturn ? " .noreturn;\n" : ";\n");
    } else {
        print_list(t->targets, t->count, "", ";\n", b);
    }
}

static void
print_stmt(const struct hed_ptx_stmt *s, struct hed_buf *b)
{
    switch ((enum hed_ptx_stmt_kind)s->kind) {
    case HED_PTX_STMT_INST:
        add_ptx_text(b, "    ");
        hed_ptx_print_inst((const struct hed_ptx_inst *)s, b);
        add_ptx_text(b, "\n");
        break;
    case HED_PTX_STMT_LABEL:
        hed_buf_addf(b, "%s:\n", s->label->name);
        break;
    case HED_PTX_STMT_OPEN:
        add_ptx_text(b, "{\n");
        break;
    case HED_PTX_STMT_CLOSE:
        add_ptx_text(b, "}\n");
        break;
    case HED_PTX_STMT_REGS:
        if (s->regs)
            print_regs(s->regs, b);
        break;
    case HED_PTX_STMT_VAR:
        print_var(s->var, b);
        break;
    case HED_PTX_STMT_TABLE:
        print_target_table(s->table, b);
        break;
    case HED_PTX_STMT_LOC:
        hed_buf_addf(b, ".loc %u %u %u\n", s->loc->file, s->loc->line, s->loc->column);
        break;
    case HED_PTX_STMT_PRAGMA:
        hed_buf_addf(b, ".pragma \"%s\";\n", s->text);
        break;
    }
}

static void
print_item(const struct hed_ptx_item *i, struct hed_buf *b)
{
    switch ((enum hed_ptx_item_kind)i->kind) {
    case HED_PTX_ITEM_VAR:
        print_var(i->var, b);
        break;
    case HED_PTX_ITEM_DECL:
        print_head(i->func, b);
        add_ptx_text(b, ";\n");
        break;
    case HED_PTX_ITEM_FUNC:
        print_head(i->func, b);
        add_ptx_text(b, "\n{\n");
        for (const struct hed_ptx_stmt *s = i->func->body; s && !b->err; s = s->next)
            print_stmt(s, b);
        add_ptx_text(b, "}\n");
        break;
    case HED_PTX_ITEM_ALIAS:
        hed_buf_addf(b, ".alias %s, %s;\n", i->func->name, i->func->alias->name);
        break;
    case HED_PTX_ITEM_PRAGMA:
        hed_buf_addf(b, ".pragma \"%s\";\n", i->text);
        break;
    case HED_PTX_ITEM_FILE:
        hed_buf_addf(b, ".file %u \"%s\"\n", i->number, i->text);
        break;
    }
}

void
hed_ptx_print(const struct hed_ptx_module *m, struct hed_buf *b)
{
    /* Not debug: ptxas would then require debug sections, which are not kept. */
    static const char *const options[] = {"texmode_unified", "texmode_independent", NULL,
                                          "map_f64_to_f32"};
    const char suffix[2] = {m->suffix, '\0'};

    hed_buf_addf(b, ".version %u.%u\n.target sm_%u%s", m->version_major, m->version_minor, m->sm,
                 suffix);
    for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (options[i] && (m->options & 1u << i))
            hed_buf_addf(b, ", %s", options[i]);
    }
    hed_buf_addf(b, "\n.address_size %u\n", m->address_size);
    for (const struct hed_ptx_item *i = m->items; i && !b->err; i = i->next)
        print_item(i, b);
}
