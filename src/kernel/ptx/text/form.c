/* Forms: an opcode and its modifiers as text, parsed once into typed fields and operand patterns.
 *
 * The tables come from words.def and opcodes.def. A spelling that they do not know becomes a form
 * with `refused` set: the module can be loaded, but a kernel that uses the form cannot run.
 */
#include "kernel/ptx/text/parser.h"

#include <stdio.h>
#include <string.h>

#define FIRST_FORMS 64u
#define OTHERS (UINT64_C(1) << 63) /* flags: words that we do not know are accepted */

_Static_assert(HED_PTX_FLAGS < 63, "the last flag bit is OTHERS");

#define T(name) (UINT64_C(1) << HED_PTX_TYPE_##name)
#define C(name) (1u << HED_PTX_CLASS_##name)
#define F(name) HED_PTX_FLAG(name)

#define T_I32 (T(U32) | T(S32))
#define T_I64 (T(U64) | T(S64))
#define T_SIGNED (T(S16) | T(S32) | T(S64))
#define T_INT (T_SIGNED | T(U16) | T(U32) | T(U64))
#define T_FLOAT (T(F32) | T(F64))
#define T_HALF (T(F16) | T(F16X2) | T(BF16) | T(BF16X2))
#define T_WIDE_FLOAT T(F32X2)
#define T_ARITH (T_INT | T_FLOAT | T_HALF | T(U16X2) | T(S16X2))
#define T_BITS (T(B16) | T(B32) | T(B64))
#define T_ALL (T_INT | T_FLOAT | T_HALF | T_BITS)
#define T_MEM (T_ALL | T(U8) | T(S8) | T(B8) | T(B128))
#define T_NARROW                                                                          \
    (T(E4M3X2) | T(E5M2X2) | T(E2M3X2) | T(E3M2X2) | T(E2M1X2) | T(UE8M0X2) | T(E4M3X4) | \
     T(E5M2X4) | T(E2M3X4) | T(E3M2X4) | T(E2M1X4))
#define T_CVT (T_ALL | T(U8) | T(S8) | T(TF32) | T_NARROW)
#define T_MATRIX                                                                             \
    (T_ALL | T(U8) | T(S8) | T(U4) | T(S4) | T(B1) | T(TF32) | T(E4M3) | T(E5M2) | T(E2M3) | \
     T(E3M2) | T(E2M1) | T(UE8M0) | T(UE4M3) | T(B8))
#define T_OPAQUE (T(TEXREF) | T(SAMPLERREF) | T(SURFREF))
#define T_VIDEO T_I32

struct opcode {
    const char *text;
    const char *operands;
    uint64_t types, flags;
    uint32_t classes, need;
    uint8_t least, most; /* types */
    uint16_t op;
    uint64_t implied; /* flags of an alias */
};

static const struct opcode opcodes[] = {
#define OP(name, family, lowering, text, operands, types, least, most, classes, flags, need) \
    {text, operands, types, flags, classes, need, least, most, HED_PTX_OP_##name, 0},
#define ALIAS(name, text, implied) {text, NULL, 0, 0, 0, 0, 0, 0, HED_PTX_OP_##name, implied},
#include "kernel/ptx/opcodes.def"
};

static const struct {
    const char *text;
    uint8_t class;
    uint8_t value;
} words[] = {
#define WORD(class, name, text) {text, HED_PTX_CLASS_##class, HED_PTX_##class##_##name},
#include "kernel/ptx/words.def"
};

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

const struct hed_ptx_type_info hed_ptx_types[HED_PTX_TYPES] = {
    {"", 0, 0},
#define TYPE(name, text, bits, kind) {text, bits, HED_PTX_KIND_##kind},
#include "kernel/ptx/words.def"
};

const struct hed_ptx_sreg_info hed_ptx_sregs[HED_PTX_SREGS] = {
#define SREG(name, text, type, dims) {text, HED_PTX_TYPE_##type, dims},
#include "kernel/ptx/sregs.def"
};

const char *
hed_ptx_op_text(enum hed_ptx_op op)
{
    for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
        if (opcodes[i].op == op && opcodes[i].operands)
            return opcodes[i].text;
    }
    return "";
}

enum hed_ptx_nature
hed_ptx_op_nature(enum hed_ptx_op op)
{
    static const uint8_t families[HED_PTX_OPS] = {
#define OP(name, family, ...) [HED_PTX_OP_##name] = HED_PTX_FAMILY_##family,
#define ALIAS(name, ...)
#include "kernel/ptx/opcodes.def"
    };
    static const uint8_t natures[HED_PTX_FAMILIES] = {
#define FAMILY(name, nature) [HED_PTX_FAMILY_##name] = HED_PTX_##nature,
#include "kernel/ptx/opcodes.def"
    };

    return natures[families[op]];
}

const char *
hed_ptx_space_text(enum hed_ptx_space space)
{
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (words[i].class == HED_PTX_CLASS_SPACE && words[i].value == space)
            return words[i].text;
    }
    return "";
}

/* Notes why the form cannot be used; the first reason stays. */
static void
refuse_form(struct hed_ptx_parser *p, struct hed_ptx_form *f, const char *fmt, const char *word)
{
    char text[160];

    if (f->refused)
        return;

    /* Every fmt here has one %s. */
    const char *mark = strstr(fmt, "%s");
    const int head = mark ? (int)(mark - fmt) : (int)strlen(fmt);

    snprintf(text, sizeof(text), "%.*s%.64s%s", head, fmt, mark ? word : "", mark ? mark + 2 : "");
    f->refused = hed_ptx_copy(p, text, strlen(text));
}

/* The row with the longest name that the text begins with. */
static const struct opcode *
find_opcode(const char *text, size_t len)
{
    const struct opcode *best = NULL;
    size_t best_len = 0;

    for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
        const size_t n = strlen(opcodes[i].text);

        if (n > best_len && n <= len && memcmp(opcodes[i].text, text, n) == 0 &&
            (n == len || text[n] == '.')) {
            best = &opcodes[i];
            best_len = n;
        }
    }
    return best;
}

static const struct opcode *
primary(const struct opcode *o)
{
    for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
        if (opcodes[i].op == o->op && opcodes[i].operands)
            return &opcodes[i];
    }
    return o;
}

/* Adds to a list of words that holds `room`; false if it is full. */
static bool
append_word(uint8_t *list, uint8_t *count, unsigned room, uint8_t value)
{
    if (*count == room)
        return false;
    list[(*count)++] = value;
    return true;
}

static bool
set_once(uint8_t *field, uint8_t value)
{
    if (*field)
        return false;
    *field = value;
    return true;
}

/* Puts a word into the field of its class; false if there is no room for another. */
static bool
put_word(struct hed_ptx_form *f, uint8_t class, uint8_t v)
{
    switch ((enum hed_ptx_class) class) {
    case HED_PTX_CLASS_TYPE:
        return append_word(f->types, &f->ntypes, COUNT_OF(f->types), v);
    case HED_PTX_CLASS_SPACE:
        return append_word(f->spaces, &f->nspaces, COUNT_OF(f->spaces), v);
    case HED_PTX_CLASS_LAYOUT:
        return append_word(f->layouts, &f->nlayouts, COUNT_OF(f->layouts), v);
    case HED_PTX_CLASS_HINT:
        return append_word(f->hints, &f->nhints, COUNT_OF(f->hints), v);
    case HED_PTX_CLASS_VEC:
        return set_once(&f->vec, (uint8_t)(1u << v));
    case HED_PTX_CLASS_COUNT:
        return set_once(&f->count, (uint8_t)(1u << (v - 1)));
    case HED_PTX_CLASS_FLAG:
        f->flags |= UINT64_C(1) << v;
        return true;
    case HED_PTX_CLASS_ROUND:
        return set_once(&f->round, v);
    case HED_PTX_CLASS_CMP:
        return set_once(&f->cmp, v);
    case HED_PTX_CLASS_OPER:
        return set_once(&f->oper, v);
    case HED_PTX_CLASS_PART:
        return set_once(&f->part, v);
    case HED_PTX_CLASS_MODE:
        return set_once(&f->mode, v);
    case HED_PTX_CLASS_CLAMP:
        return set_once(&f->clamp, v);
    case HED_PTX_CLASS_COP:
        return set_once(&f->cop, v);
    case HED_PTX_CLASS_SEM:
        return set_once(&f->sem, v);
    case HED_PTX_CLASS_SCOPE:
        return set_once(&f->scope, v);
    case HED_PTX_CLASS_GEOM:
        return set_once(&f->geom, v);
    case HED_PTX_CLASS_MATRIX:
        return set_once(&f->matrix, v);
    case HED_PTX_CLASS_CHANNEL:
        return set_once(&f->channel, v);
    case HED_PTX_CLASS_FETCH:
        return set_once(&f->fetch, v);
    case HED_PTX_CLASS_QUERY:
        return set_once(&f->query, v);
    case HED_PTX_CLASS_SHAPE:
    case HED_PTX_CLASSES:
        break;
    }
    return false;
}

/* m16n8k16, m8n8 */
static bool
put_shape(struct hed_ptx_form *f, const char *word)
{
    unsigned m = 0;
    unsigned n = 0;
    unsigned k = 0;
    int end = 0;

    if (sscanf(word, "m%3un%3u%n", &m, &n, &end) < 2 || end == 0)
        return false;
    if (word[end] == 'k') {
        int more = 0;

        if (sscanf(word + end, "k%3u%n", &k, &more) < 1)
            return false;
        end += more;
    }
    if (word[end] != '\0' || f->m)
        return false;
    f->m = (uint16_t)m;
    f->n = (uint16_t)n;
    f->k = (uint16_t)k;
    return true;
}

/* Does the opcode take this word? */
static bool
opcode_allows(const struct opcode *o, uint8_t class, uint8_t value)
{
    if (class == HED_PTX_CLASS_FLAG)
        return (o->flags >> value & 1) != 0;
    if (class == HED_PTX_CLASS_TYPE)
        return (o->types >> value & 1) != 0;
    return (o->classes >> class & 1) != 0;
}

static void
take_modifier(struct hed_ptx_parser *p, struct hed_ptx_form *f, const struct opcode *o,
              const char *word)
{
    bool known = false, twice = false;

    if ((o->classes & C(SHAPE)) && put_shape(f, word))
        return;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (strcmp(words[i].text, word) != 0)
            continue;
        known = true;
        if (!opcode_allows(o, words[i].class, words[i].value))
            continue;
        if (put_word(f, words[i].class, words[i].value))
            return;
        twice = true; /* unless it has another meaning, too */
    }
    if (o->flags & OTHERS)
        f->other_words = true;
    else if (twice)
        refuse_form(p, f, "Modifier '.%s' cannot be given twice", word);
    else if (known)
        refuse_form(p, f, "Illegal modifier '.%s'", word);
    else
        refuse_form(p, f, "Unknown modifier '.%s'", word);
}

static uint32_t
class_is_said(const struct hed_ptx_form *f)
{
    uint32_t s = 0;

    s |= f->round ? C(ROUND) : 0;
    s |= f->cmp ? C(CMP) : 0;
    s |= f->oper ? C(OPER) : 0;
    s |= f->part ? C(PART) : 0;
    s |= f->mode ? C(MODE) : 0;
    s |= f->clamp ? C(CLAMP) : 0;
    s |= f->cop ? C(COP) : 0;
    s |= f->scope ? C(SCOPE) : 0;
    s |= f->geom ? C(GEOM) : 0;
    s |= f->nspaces ? C(SPACE) : 0;
    s |= f->nlayouts ? C(LAYOUT) : 0;
    s |= f->count ? C(COUNT) : 0;
    s |= f->matrix ? C(MATRIX) : 0;
    s |= f->channel ? C(CHANNEL) : 0;
    s |= f->query ? C(QUERY) : 0;
    s |= f->m ? C(SHAPE) : 0;
    return s;
}

/* Products of bits, and only these, say what takes the place of the product and of the sum. */
static bool
is_product_well_said(const struct hed_ptx_form *f)
{
    const bool is_bits = f->ntypes >= 4 && f->types[1] == HED_PTX_TYPE_B1;
    const bool says = f->oper || (f->flags & F(POPC));

    return is_bits ? f->types[2] == HED_PTX_TYPE_B1 && (f->flags & F(POPC)) &&
                         (f->oper == HED_PTX_OPER_XOR || f->oper == HED_PTX_OPER_AND)
                   : !says;
}

/* Checks what the table alone cannot express. */
static void
check_form(struct hed_ptx_parser *p, struct hed_ptx_form *f, const struct opcode *o)
{
    const uint8_t kind = hed_ptx_types[f->types[0]].kind;
    const bool is_int = kind == HED_PTX_KIND_U || kind == HED_PTX_KIND_S;

    if (f->ntypes < o->least || f->ntypes > o->most)
        refuse_form(p, f, "Unexpected instruction types specified for '%s'", o->text);
    else if (o->need & ~class_is_said(f))
        refuse_form(p, f, "A required modifier of '%s' is missing", o->text);
    else if ((f->op == HED_PTX_OP_MUL || f->op == HED_PTX_OP_MAD) && is_int != (f->part != 0))
        refuse_form(p, f, "Unexpected instruction types specified for '%s'", o->text);
    else if ((f->op == HED_PTX_OP_MMA || f->op == HED_PTX_OP_WMMA_MMA) && !is_product_well_said(f))
        refuse_form(p, f, "Unexpected instruction types specified for '%s'", o->text);
    else if (f->part == HED_PTX_PART_WIDE && hed_ptx_types[f->types[0]].bits == 64)
        refuse_form(p, f, "Unexpected instruction types specified for '%s'", o->text);
}

/* The letter for the type in a pattern: see opcodes.def. */
static void
set_slot_type(const struct hed_ptx_form *f, struct hed_ptx_slot *s, char c)
{
    switch (c) {
    case '0':
    case '1':
    case '2':
    case '3':
        s->type = f->types[c - '0'];
        break;
    case 'L':
        s->type = f->ntypes ? f->types[f->ntypes - 1] : 0;
        break;
    case 'w':
        s->type = f->types[0];
        if (f->part == HED_PTX_PART_WIDE)
            s->type++;
        break;
    case 'p':
        s->type = HED_PTX_TYPE_PRED;
        break;
    case 'i':
        s->size = 32;
        break;
    case 'q':
        s->size = 64;
        break;
    case 'a':
        s->is_address = true;
        break;
    default:
        break;
    }
}

/* Reads one pattern, up to its end or a '/'. Returns the start of the next one, or NULL. */
static const char *
set_pattern(const struct hed_ptx_form *f, struct hed_ptx_pattern *pat, const char *text)
{
    for (; *text && *text != '/'; text += strcspn(text, " /")) {
        struct hed_ptx_slot s = {0};

        text += strspn(text, " ");
        if (*text == '\0' || *text == '/')
            break;
        if (*text == '*') {
            pat->most = UINT8_MAX;
            return NULL;
        }
        if (*text == 'c') {
            if (f->oper != HED_PTX_OPER_CAS)
                continue;
            text++;
        } else if (*text == 'h') {
            if (!(f->flags & F(CACHE_HINT)))
                continue;
            text++;
        }
        if (*text == '?') {
            s.optional = true;
            text++;
        }
        s.role = text[0];
        set_slot_type(f, &s, text[1]);
        if (s.role == 'v' || s.role == 'u' || s.role == 'D')
            s.arity = f->vec;
        pat->slots[pat->most++] = s;
        pat->least = (uint8_t)(pat->least + !s.optional);
    }
    return *text == '/' ? text + 1 : NULL;
}

static struct hed_ptx_form *
new_form(struct hed_ptx_parser *p, const char *text, size_t len)
{
    struct hed_ptx_form *f = hed_ptx_alloc(p, 1, sizeof(*f));
    const struct opcode *alias = find_opcode(text, len);
    const struct opcode *o = alias ? primary(alias) : NULL;

    f->text = hed_ptx_copy(p, text, len);
    p->m->nforms++;
    if (!o) {
        refuse_form(p, f, "Not a name of any known instruction: '%s'", f->text);
        return f;
    }
    f->op = o->op;
    f->flags = alias->implied;
    for (size_t at = strlen(alias->text); at < len;) {
        char word[64];
        const size_t n = strcspn(f->text + ++at, ".");

        if (n >= sizeof(word)) {
            refuse_form(p, f, "Unknown modifier '.%s'", f->text + at);
        } else {
            memcpy(word, f->text + at, n);
            word[n] = '\0';
            take_modifier(p, f, o, word);
        }
        at += n;
    }
    check_form(p, f, o);
    for (const char *next = o->operands; next && f->npatterns < HED_PTX_ALTS_MAX;)
        next = set_pattern(f, &f->patterns[f->npatterns++], next);
    return f;
}

static void
grow_forms(struct hed_ptx_parser *p)
{
    const uint32_t size = p->forms_size ? p->forms_size * 2 : FIRST_FORMS;
    struct hed_ptx_form_slot *forms = hed_ptx_alloc(p, size, sizeof(*forms));

    for (uint32_t i = 0; i < p->forms_size; i++) {
        if (!p->forms[i].form)
            continue;

        uint32_t at = p->forms[i].hash & (size - 1);

        while (forms[at].form)
            at = (at + 1) & (size - 1);
        forms[at] = p->forms[i];
    }
    p->forms = forms;
    p->forms_size = size;
}

const struct hed_ptx_form *
hed_ptx_form(struct hed_ptx_parser *p, const char *text, size_t len)
{
    const uint32_t hash = hed_ptx_hash(text, len);

    if (p->nforms * 4 >= p->forms_size * 3)
        grow_forms(p);

    uint32_t at = hash & (p->forms_size - 1);

    for (struct hed_ptx_form_slot *s; (s = &p->forms[at])->form;
         at = (at + 1) & (p->forms_size - 1)) {
        if (s->hash == hash && s->len == len && memcmp(s->form->text, text, len) == 0)
            return s->form;
    }
    p->forms[at] = (struct hed_ptx_form_slot){hash, (uint32_t)len, new_form(p, text, len)};
    p->nforms++;
    return p->forms[at].form;
}
