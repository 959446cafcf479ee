/* Modules: directives outside of functions, heads of functions, errors, memory.
 *
 *   lex.c -> parse.c        modules, heads of functions
 *            var.c init.c   variables, parameters, initialisers
 *            body.c         statements, scopes, labels
 *            inst.c         instructions and operands -> form.c -> check.c
 */
#include "kernel/ptx/text/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernel/ptx/text/parser.h"

static void *
alloc_or_give_up(struct hed_ptx_parser *p, size_t bytes, size_t align)
{
    const struct hed_arena *a = &p->m->arena;
    void *memory = hed_arena_alloc(&p->m->arena, bytes, align);

    if (!memory)
        hed_ptx_give_up(p, bytes + align > a->ceiling - a->used ? HED_ELIMIT : HED_ENOMEM);
    return memory;
}

void *
hed_ptx_alloc(struct hed_ptx_parser *p, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        hed_ptx_give_up(p, HED_ELIMIT);
    return memset(alloc_or_give_up(p, bytes, bytes < 8 ? 1 : 8), 0, bytes);
}

const char *
hed_ptx_copy(struct hed_ptx_parser *p, const char *text, size_t len)
{
    char *copy = alloc_or_give_up(p, len + 1, 1);

    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void
hed_ptx_give_up(struct hed_ptx_parser *p, int err)
{
    p->err = err;
    longjmp(*p->give_up, 1);
}

static void __attribute__((format(printf, 4, 0)))
add_parse_error(struct hed_ptx_parser *p, uint32_t line, uint32_t column, const char *fmt,
                va_list args)
{
    char text[320];
    struct hed_ptx_error *e;

    vsnprintf(text, sizeof(text), fmt, args);
    e = hed_ptx_alloc(p, 1, sizeof(*e));
    e->line = line;
    e->column = column;
    e->text = hed_ptx_copy(p, text, strlen(text));
    *p->errors_end = e;
    p->errors_end = &e->next;
    if (++p->m->nerrors == HED_PTX_ERRORS_MAX)
        hed_ptx_give_up(p, HED_EFORMAT);
}

void
hed_ptx_error_at(struct hed_ptx_parser *p, uint32_t line, uint32_t column, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_parse_error(p, line, column, fmt, args);
    va_end(args);
}

void
hed_ptx_fail(struct hed_ptx_parser *p, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_parse_error(p, p->tok.line, p->tok.column, fmt, args);
    va_end(args);
    longjmp(*p->recover, 1);
}

void
hed_ptx_fail_name(struct hed_ptx_parser *p, const char *fmt, const char *name)
{
    const char *mark = strstr(fmt, "%s");
    const int head = mark ? (int)(mark - fmt) : (int)strlen(fmt);

    hed_ptx_error_at(p, p->name_line, p->name_column, "%.*s%s%s", head, fmt, mark ? name : "",
                     mark ? mark + 2 : "");
    longjmp(*p->recover, 1);
}

void
hed_ptx_syntax(struct hed_ptx_parser *p)
{
    const int n = p->tok.len < 64 ? (int)p->tok.len : 64;

    if (p->tok.kind == HED_PTX_TOKEN_END)
        hed_ptx_fail(p, "Parsing error near end of file: syntax error");
    hed_ptx_fail(p, "Parsing error near '%s%.*s': syntax error",
                 p->tok.kind == HED_PTX_TOKEN_DOT ? "." : "", n, p->tok.text);
}

bool
hed_ptx_at_dot(const struct hed_ptx_parser *p, const char *word)
{
    return p->tok.kind == HED_PTX_TOKEN_DOT && p->tok.len == strlen(word) &&
           memcmp(p->tok.text, word, p->tok.len) == 0;
}

bool
hed_ptx_take_dot(struct hed_ptx_parser *p, const char *word)
{
    if (!hed_ptx_at_dot(p, word))
        return false;
    hed_ptx_next(p);
    return true;
}

static struct hed_ptx_item *
add_module_item(struct hed_ptx_parser *p, int kind)
{
    struct hed_ptx_item *i = hed_ptx_alloc(p, 1, sizeof(*i));

    i->kind = (uint8_t)kind;
    *p->items_end = i;
    p->items_end = &i->next;
    return i;
}

/* The lexer takes 8.7 for a float, so the digits are read here. */
static void
take_version(struct hed_ptx_parser *p)
{
    unsigned major = 0;
    unsigned minor = 0;
    char text[16] = "";

    if (p->tok.kind != HED_PTX_TOKEN_F64 || p->tok.len >= sizeof(text))
        hed_ptx_syntax(p);
    memcpy(text, p->tok.text, p->tok.len);
    if (sscanf(text, "%3u.%3u", &major, &minor) != 2)
        hed_ptx_syntax(p);
    p->m->version_major = (uint16_t)major;
    p->m->version_minor = (uint16_t)minor;
    hed_ptx_next(p);
}

static void
take_target(struct hed_ptx_parser *p)
{
    static const struct {
        const char *text;
        int option;
    } options[] = {
        {"texmode_unified", HED_PTX_OPTION_TEXMODE_UNIFIED},
        {"texmode_independent", HED_PTX_OPTION_TEXMODE_INDEPENDENT},
        {"debug", HED_PTX_OPTION_DEBUG},
        {"map_f64_to_f32", HED_PTX_OPTION_MAP_F64},
    };

    do {
        const struct hed_ptx_name *name = hed_ptx_take_name(p);
        unsigned sm = 0;
        char suffix = '\0';
        bool known = false;

        if (sscanf(name->text, "sm_%4u%c", &sm, &suffix) >= 1) {
            p->m->sm = (uint16_t)sm;
            p->m->suffix = suffix;
            known = suffix == '\0' || suffix == 'a' || suffix == 'f';
        }
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
            if (strcmp(options[i].text, name->text) == 0) {
                p->m->options |= (uint8_t)options[i].option;
                known = true;
            }
        }
        if (!known)
            hed_ptx_fail_name(p, "Unknown target '%s'", name->text);
    } while (hed_ptx_take(p, ','));
}

/* .file 1 "name", 123, 456; clang puts the folder in front, as another string. */
static void
take_file(struct hed_ptx_parser *p)
{
    struct hed_ptx_item *i = add_module_item(p, HED_PTX_ITEM_FILE);

    i->text = "";
    i->number = (uint32_t)hed_ptx_take_u32(p);
    if (p->tok.kind != HED_PTX_TOKEN_STRING)
        hed_ptx_syntax(p);
    i->text = hed_ptx_copy(p, p->tok.text, p->tok.len);
    hed_ptx_next(p);
    if (p->tok.kind == HED_PTX_TOKEN_STRING) {
        const size_t folder = strlen(i->text);
        char *whole = hed_ptx_alloc(p, folder + p->tok.len + 2, 1);

        memcpy(whole, i->text, folder);
        whole[folder] = '/';
        memcpy(whole + folder + 1, p->tok.text, p->tok.len);
        i->text = whole;
        hed_ptx_next(p);
    }
    while (hed_ptx_take(p, ','))
        hed_ptx_take_value(p);
}

/* Debug sections do not change what the program does. */
static void
skip_section(struct hed_ptx_parser *p)
{
    hed_ptx_next(p);
    hed_ptx_expect(p, '{');
    while (!hed_ptx_at(p, '}')) {
        if (p->tok.kind == HED_PTX_TOKEN_END)
            hed_ptx_syntax(p);
        hed_ptx_next(p);
    }
    hed_ptx_next(p);
}

static void
take_pragmas(struct hed_ptx_parser *p, struct hed_ptx_func *f)
{
    do {
        if (p->tok.kind != HED_PTX_TOKEN_STRING)
            hed_ptx_syntax(p);

        const char *text = hed_ptx_copy(p, p->tok.text, p->tok.len);

        if (!f)
            add_module_item(p, HED_PTX_ITEM_PRAGMA)->text = text;
        else if (f->directives.npragmas < 4)
            f->directives.pragmas[f->directives.npragmas++] = text;
        hed_ptx_next(p);
    } while (hed_ptx_take(p, ','));
    hed_ptx_take(p, ';');
}

/* x, y, z; those that are left out are 1. */
static void
take_three(struct hed_ptx_parser *p, uint32_t out[3])
{
    out[0] = (uint32_t)hed_ptx_take_u32(p);
    out[1] = hed_ptx_take(p, ',') ? (uint32_t)hed_ptx_take_u32(p) : 1;
    out[2] = hed_ptx_take(p, ',') ? (uint32_t)hed_ptx_take_u32(p) : 1;
}

static void
take_func_directives(struct hed_ptx_parser *p, struct hed_ptx_func *f)
{
    struct hed_ptx_directives *d = &f->directives;

    while (p->tok.kind == HED_PTX_TOKEN_DOT) {
        if (hed_ptx_take_dot(p, "maxntid"))
            take_three(p, d->maxntid);
        else if (hed_ptx_take_dot(p, "reqntid"))
            take_three(p, d->reqntid);
        else if (hed_ptx_take_dot(p, "reqnctapercluster"))
            take_three(p, d->reqnctapercluster);
        else if (hed_ptx_take_dot(p, "minnctapersm"))
            d->minnctapersm = (uint32_t)hed_ptx_take_u32(p);
        else if (hed_ptx_take_dot(p, "maxnctapersm"))
            d->maxnctapersm = (uint32_t)hed_ptx_take_u32(p);
        else if (hed_ptx_take_dot(p, "maxnreg"))
            d->maxnreg = (uint32_t)hed_ptx_take_u32(p);
        else if (hed_ptx_take_dot(p, "maxclusterrank"))
            d->maxclusterrank = (uint32_t)hed_ptx_take_u32(p);
        else if (hed_ptx_take_dot(p, "explicitcluster"))
            d->explicitcluster = true;
        else if (hed_ptx_take_dot(p, "blocksareclusters"))
            d->blocksareclusters = true;
        else if (hed_ptx_take_dot(p, "noreturn"))
            f->sig.noreturn = true;
        else if (hed_ptx_take_dot(p, "pragma"))
            take_pragmas(p, f);
        else if (hed_ptx_take_dot(p, "abi_preserve") || hed_ptx_take_dot(p, "abi_preserve_control"))
            hed_ptx_take_u32(p);
        else
            hed_ptx_syntax(p);
    }
}

/* The function with that name; makes it if there is none. */
static struct hed_ptx_func *
find_func(struct hed_ptx_parser *p, struct hed_ptx_name *name, bool is_entry)
{
    if (name->sym && name->sym->kind == HED_PTX_SYM_FUNC && name->sym->func->is_entry == is_entry)
        return name->sym->func;

    struct hed_ptx_sym *s = hed_ptx_declare(p, name, HED_PTX_SYM_FUNC);
    struct hed_ptx_func *f = hed_ptx_alloc(p, 1, sizeof(*f));

    f->name = name->text;
    f->is_entry = is_entry;
    f->line = p->tok.line;
    *p->funcs_end = f;
    p->funcs_end = &f->next;
    p->m->nfuncs++;
    p->m->nentries += is_entry;
    if (s)
        s->func = f;
    return f;
}

static void
take_definition(struct hed_ptx_parser *p, struct hed_ptx_func *f)
{
    if (f->has_body)
        hed_ptx_fail_name(p, "Duplicate definition of '%s'", f->name);
    p->func = f;
    p->regs_end = &f->regs;
    add_module_item(p, HED_PTX_ITEM_FUNC)->func = f;
    hed_ptx_open_scope(p);
    hed_ptx_declare_params(p, f->sig.rets);
    hed_ptx_declare_params(p, f->sig.params);
    hed_ptx_expect(p, '{');
    hed_ptx_take_body(p, f);
    hed_ptx_close_scope(p);
    p->func = NULL;
}

/* .func or .entry has been taken. */
static void
take_func(struct hed_ptx_parser *p, int linkage, bool is_entry)
{
    const uint32_t line = p->tok.line;
    struct hed_ptx_func now = {0};
    uint64_t ignored;

    if (!is_entry && hed_ptx_at_dot(p, "attribute")) {
        hed_ptx_next(p);
        while (!hed_ptx_take(p, ')')) {
            if (p->tok.kind == HED_PTX_TOKEN_END)
                hed_ptx_syntax(p);
            hed_ptx_next(p);
        }
        hed_ptx_take(p, ')');
    }
    if (!is_entry && hed_ptx_at(p, '('))
        now.sig.rets = hed_ptx_take_params(p, &now.sig.nrets, &ignored);

    struct hed_ptx_func *f = find_func(p, hed_ptx_take_name(p), is_entry);

    if (hed_ptx_at(p, '('))
        now.sig.params = hed_ptx_take_params(p, &now.sig.nparams, &now.sig.params_size);
    take_func_directives(p, &now);
    if (!f->has_body) {
        f->sig = now.sig;
        f->directives = now.directives;
        if (linkage != HED_PTX_LINKAGE_NONE || !hed_ptx_at(p, ';'))
            f->linkage = (uint8_t)linkage;
    }
    if (hed_ptx_take(p, ';')) {
        add_module_item(p, HED_PTX_ITEM_DECL)->func = f;
        return;
    }
    f->line = line;
    take_definition(p, f);
}

static void
take_alias(struct hed_ptx_parser *p)
{
    struct hed_ptx_name *name = hed_ptx_take_name(p);

    hed_ptx_expect(p, ',');

    struct hed_ptx_name *of = hed_ptx_take_name(p);

    hed_ptx_expect(p, ';');
    if (!name->sym || name->sym->kind != HED_PTX_SYM_FUNC)
        hed_ptx_fail_name(p, "Unknown symbol '%s'", name->text);
    if (!of->sym || of->sym->kind != HED_PTX_SYM_FUNC || of->sym == name->sym)
        hed_ptx_fail_name(p, "Unknown symbol '%s'", of->text);
    name->sym->func->alias = of->sym->func;
    add_module_item(p, HED_PTX_ITEM_ALIAS)->func = name->sym->func;
}

static int
take_linkage(struct hed_ptx_parser *p)
{
    static const char *const texts[] = {NULL, "extern", "visible", "weak", "common"};

    for (int i = 1; i < (int)(sizeof(texts) / sizeof(texts[0])); i++) {
        if (hed_ptx_take_dot(p, texts[i]))
            return i;
    }
    return HED_PTX_LINKAGE_NONE;
}

static void
take_declaration(struct hed_ptx_parser *p)
{
    const int linkage = take_linkage(p);
    struct hed_ptx_var *next;

    if (hed_ptx_take_dot(p, "func")) {
        take_func(p, linkage, false);
        return;
    }
    if (hed_ptx_take_dot(p, "entry")) {
        take_func(p, linkage, true);
        return;
    }

    const int space = hed_ptx_space_at(p);

    if (!space || space == HED_PTX_SPACE_REG || space == HED_PTX_SPACE_SREG)
        hed_ptx_syntax(p);
    hed_ptx_next(p);
    for (struct hed_ptx_var *v = hed_ptx_take_vars(p, space, linkage); v; v = next) {
        next = v->next;
        v->next = NULL;
        add_module_item(p, HED_PTX_ITEM_VAR)->var = v;
        p->m->nvars++;
    }
}

static void
take_item(struct hed_ptx_parser *p)
{
    p->line = p->tok.line;
    p->column = p->tok.column;
    if (hed_ptx_take(p, ';'))
        return;
    if (p->tok.kind != HED_PTX_TOKEN_DOT)
        hed_ptx_syntax(p);
    if (hed_ptx_take_dot(p, "version"))
        take_version(p);
    else if (hed_ptx_take_dot(p, "target"))
        take_target(p);
    else if (hed_ptx_take_dot(p, "address_size"))
        p->m->address_size = (uint8_t)hed_ptx_take_u32(p);
    else if (hed_ptx_take_dot(p, "file"))
        take_file(p);
    else if (hed_ptx_take_dot(p, "section"))
        skip_section(p);
    else if (hed_ptx_take_dot(p, "pragma"))
        take_pragmas(p, NULL);
    else if (hed_ptx_take_dot(p, "alias"))
        take_alias(p);
    else
        take_declaration(p);
}

/* After an error outside of a body: continues after the next ';' or block. */
static void
skip_bad_directive(struct hed_ptx_parser *p)
{
    unsigned depth = 0;

    while (p->depth > 0) {
        p->scopes[p->depth].fixups = NULL;
        hed_ptx_close_scope(p);
    }
    p->func = NULL;
    p->nesting = 0;
    for (; p->tok.kind != HED_PTX_TOKEN_END; hed_ptx_next(p)) {
        if (hed_ptx_at(p, '{')) {
            depth++;
        } else if (hed_ptx_at(p, '}') && depth <= 1) {
            hed_ptx_next(p);
            return;
        } else if (hed_ptx_at(p, '}')) {
            depth--;
        } else if (hed_ptx_at(p, ';') && depth == 0) {
            hed_ptx_next(p);
            return;
        }
    }
}

static void
take_module(struct hed_ptx_parser *p)
{
    jmp_buf here;

    p->recover = &here;
    if (_setjmp(here))
        skip_bad_directive(p);
    while (p->tok.kind != HED_PTX_TOKEN_END)
        take_item(p);
    p->recover = p->give_up;
    if (p->m->nerrors == 0 && p->m->version_major == 0)
        hed_ptx_error_at(p, 1, 1, "Missing .version directive");
    else if (p->m->nerrors == 0 && p->m->sm == 0)
        hed_ptx_error_at(p, 1, 1, "Missing .target directive");
}

void
hed_ptx_module_init(struct hed_ptx_module *m, size_t ceiling)
{
    *m = (struct hed_ptx_module){.address_size = 32};
    hed_arena_init(&m->arena, ceiling);
}

/* Apart from hed_ptx_parse(), so that the parser is not a variable of the function with the
 * setjmp. */
static void
parse_module(struct hed_ptx_parser *p)
{
    jmp_buf end;

    p->give_up = p->recover = &end;
    if (_setjmp(end))
        return;
    hed_ptx_next(p);
    take_module(p);
    hed_ptx_spread_refusals(p);
}

int
hed_ptx_parse(struct hed_ptx_module *m, const char *text, size_t size)
{
    struct hed_ptx_parser p = {.m = m};

    p.items_end = &m->items;
    p.funcs_end = &m->funcs;
    p.errors_end = &m->errors;
    hed_ptx_lex_init(&p.lex, text, size);
    parse_module(&p);
    if (p.err)
        return p.err;
    return m->nerrors ? HED_EFORMAT : 0;
}

void
hed_ptx_log(const struct hed_ptx_module *m, struct hed_buf *log)
{
    for (const struct hed_ptx_error *e = m->errors; e; e = e->next)
        hed_buf_addf(log, "ptx input, line %u, column %u; error   : %s\n", e->line, e->column,
                     e->text);
    if (m->errors)
        hed_buf_addf(log, "ptx fatal   : Ptx assembly aborted due to errors\n");
}

void
hed_ptx_module_fini(struct hed_ptx_module *m)
{
    hed_arena_fini(&m->arena);
}
