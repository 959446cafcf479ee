/* Constant expressions: precedence climbing over 64-bit integers and doubles. */
#include "kernel/ptx/text/parser.h"

#include <string.h>

static struct hed_ptx_value take_expr(struct hed_ptx_parser *p, int least, int depth);

double
hed_ptx_value_double(const struct hed_ptx_value *v)
{
    double d = 0;
    float f;

    if (v->kind == HED_PTX_VALUE_F64) {
        memcpy(&d, &v->bits, sizeof(d));
        return d;
    }
    if (v->kind == HED_PTX_VALUE_F32) {
        const uint32_t bits = (uint32_t)v->bits;

        memcpy(&f, &bits, sizeof(f));
        return (double)f;
    }
    return v->is_unsigned ? (double)v->bits : (double)(int64_t)v->bits;
}

static struct hed_ptx_value
of_double(double d)
{
    struct hed_ptx_value v = {.kind = HED_PTX_VALUE_F64};

    memcpy(&v.bits, &d, sizeof(d));
    return v;
}

static struct hed_ptx_value
of_int(uint64_t bits, bool is_unsigned)
{
    return (struct hed_ptx_value){HED_PTX_VALUE_INT, is_unsigned, bits};
}

static struct hed_ptx_value
negate_value(const struct hed_ptx_value *v)
{
    struct hed_ptx_value r = *v;

    if (v->kind == HED_PTX_VALUE_F32)
        r.bits ^= UINT64_C(1) << 31;
    else if (v->kind == HED_PTX_VALUE_F64)
        r.bits ^= UINT64_C(1) << 63;
    else
        r.bits = -v->bits;
    return r;
}

/* "(.s64)" and "(.u64)" in front of a value. */
static bool
take_cast(struct hed_ptx_parser *p, bool *is_unsigned)
{
    if (!hed_ptx_at_dot(p, "s64") && !hed_ptx_at_dot(p, "u64"))
        return false;
    *is_unsigned = p->tok.text[0] == 'u';
    hed_ptx_next(p);
    hed_ptx_expect(p, ')');
    return true;
}

static struct hed_ptx_value
take_literal(struct hed_ptx_parser *p)
{
    const struct hed_ptx_token t = p->tok;

    hed_ptx_next(p);
    switch (t.kind) {
    case HED_PTX_TOKEN_INT:
        return of_int(t.bits, t.bits > INT64_MAX || t.text[t.len - 1] == 'U');
    case HED_PTX_TOKEN_F32:
        return (struct hed_ptx_value){.kind = HED_PTX_VALUE_F32, .bits = t.bits};
    default:
        return (struct hed_ptx_value){.kind = HED_PTX_VALUE_F64, .bits = t.bits};
    }
}

static struct hed_ptx_value
take_unary(struct hed_ptx_parser *p, int depth)
{
    struct hed_ptx_value v;

    if (depth > HED_PTX_DEPTH_MAX)
        hed_ptx_fail(p, "Expression is nested too deeply");
    if (hed_ptx_take(p, '-')) {
        v = take_unary(p, depth + 1);
        return negate_value(&v);
    }
    if (hed_ptx_take(p, '+'))
        return take_unary(p, depth + 1);
    if (hed_ptx_take(p, '~')) {
        v = take_unary(p, depth + 1);
        return of_int(~v.bits, v.is_unsigned);
    }
    if (hed_ptx_take(p, '!')) {
        v = take_unary(p, depth + 1);
        return of_int(v.bits == 0, false);
    }
    if (hed_ptx_take(p, '(')) {
        bool is_unsigned;

        if (take_cast(p, &is_unsigned)) {
            v = take_unary(p, depth + 1);
            return of_int(v.bits, is_unsigned);
        }
        v = take_expr(p, 0, depth + 1);
        hed_ptx_expect(p, ')');
        return v;
    }
    if (p->tok.kind == HED_PTX_TOKEN_INT || p->tok.kind == HED_PTX_TOKEN_F32 ||
        p->tok.kind == HED_PTX_TOKEN_F64)
        return take_literal(p);
    if (p->tok.kind == HED_PTX_TOKEN_IDENT && p->tok.len == 7 &&
        memcmp(p->tok.text, "WARP_SZ", 7) == 0) {
        hed_ptx_next(p);
        return of_int(32, false);
    }
    hed_ptx_syntax(p);
}

/* A higher number binds tighter; -1 if the token is not an operator. */
static int
operator_precedence(const struct hed_ptx_parser *p)
{
    static const struct {
        uint16_t punct;
        int level;
    } table[] = {
        {'?', 0},
        {HED_PTX_PUNCT_OR, 1},
        {HED_PTX_PUNCT_AND, 2},
        {'|', 3},
        {'^', 4},
        {'&', 5},
        {HED_PTX_PUNCT_EQ, 6},
        {HED_PTX_PUNCT_NE, 6},
        {'<', 7},
        {'>', 7},
        {HED_PTX_PUNCT_LE, 7},
        {HED_PTX_PUNCT_GE, 7},
        {HED_PTX_PUNCT_SHL, 8},
        {HED_PTX_PUNCT_SHR, 8},
        {'+', 9},
        {'-', 9},
        {'*', 10},
        {'/', 10},
        {'%', 10},
    };

    if (p->tok.kind != HED_PTX_TOKEN_PUNCT)
        return -1;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].punct == p->tok.punct)
            return table[i].level;
    }
    return -1;
}

static struct hed_ptx_value
apply_double(struct hed_ptx_parser *p, unsigned op, double a, double b)
{
    switch (op) {
    case '+':
        return of_double(a + b);
    case '-':
        return of_double(a - b);
    case '*':
        return of_double(a * b);
    case '/':
        return of_double(a / b);
    default:
        hed_ptx_fail(p, "Illegal operator in a floating-point expression");
    }
}

static uint64_t
divide_values(struct hed_ptx_parser *p, bool rest, bool is_unsigned, uint64_t a, uint64_t b)
{
    if (b == 0)
        hed_ptx_fail(p, "Division by zero in a constant expression");
    if (is_unsigned)
        return rest ? a % b : a / b;
    if ((int64_t)b == -1)
        return rest ? 0 : -a;
    return (uint64_t)(rest ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

static bool
compare_values(unsigned op, bool is_unsigned, uint64_t a, uint64_t b)
{
    const bool less = is_unsigned ? a < b : (int64_t)a < (int64_t)b;

    switch (op) {
    case '<':
        return less;
    case '>':
        return !less && a != b;
    case HED_PTX_PUNCT_LE:
        return less || a == b;
    case HED_PTX_PUNCT_GE:
        return !less;
    case HED_PTX_PUNCT_EQ:
        return a == b;
    default:
        return a != b;
    }
}

static uint64_t
shift(unsigned op, bool is_unsigned, uint64_t a, uint64_t b)
{
    const bool negative = !is_unsigned && (int64_t)a < 0;

    if (b > 63)
        return op == HED_PTX_PUNCT_SHR && negative ? UINT64_MAX : 0;
    if (op == HED_PTX_PUNCT_SHL)
        return a << b;
    return negative ? ~(~a >> b) : a >> b;
}

static struct hed_ptx_value
apply_operator(struct hed_ptx_parser *p, unsigned op, const struct hed_ptx_value *x,
               const struct hed_ptx_value *y)
{
    const bool u = x->is_unsigned || y->is_unsigned;
    const uint64_t a = x->bits;
    const uint64_t b = y->bits;

    if (x->kind != HED_PTX_VALUE_INT || y->kind != HED_PTX_VALUE_INT)
        return apply_double(p, op, hed_ptx_value_double(x), hed_ptx_value_double(y));
    switch (op) {
    case '+':
        return of_int(a + b, u);
    case '-':
        return of_int(a - b, u);
    case '*':
        return of_int(a * b, u);
    case '/':
    case '%':
        return of_int(divide_values(p, op == '%', u, a, b), u);
    case '&':
        return of_int(a & b, u);
    case '|':
        return of_int(a | b, u);
    case '^':
        return of_int(a ^ b, u);
    case HED_PTX_PUNCT_AND:
        return of_int(a && b, false);
    case HED_PTX_PUNCT_OR:
        return of_int(a || b, false);
    case HED_PTX_PUNCT_SHL:
    case HED_PTX_PUNCT_SHR:
        return of_int(shift(op, x->is_unsigned, a, b), x->is_unsigned);
    default:
        return of_int(compare_values(op, u, a, b), false);
    }
}

static struct hed_ptx_value
take_expr(struct hed_ptx_parser *p, int least, int depth)
{
    struct hed_ptx_value a = take_unary(p, depth);

    for (int level; (level = operator_precedence(p)) >= least;) {
        const unsigned op = p->tok.punct;

        if (level < 0)
            break;
        hed_ptx_next(p);
        if (op == '?') {
            const struct hed_ptx_value yes = take_expr(p, 0, depth + 1);

            hed_ptx_expect(p, ':');

            const struct hed_ptx_value no = take_expr(p, 0, depth + 1);

            a = a.bits ? yes : no;
            continue;
        }

        const struct hed_ptx_value b = take_expr(p, level + 1, depth + 1);

        a = apply_operator(p, op, &a, &b);
    }
    return a;
}

struct hed_ptx_value
hed_ptx_take_value(struct hed_ptx_parser *p)
{
    /* An expression is nearly always a single number. */
    if (p->tok.kind == HED_PTX_TOKEN_INT) {
        const struct hed_ptx_lexer before = p->lex;
        const struct hed_ptx_token t = p->tok;

        hed_ptx_next(p);
        if (operator_precedence(p) < 0)
            return of_int(t.bits, t.bits > INT64_MAX || t.text[t.len - 1] == 'U');
        p->lex = before;
        p->tok = t;
    }
    return take_expr(p, 0, 0);
}

uint64_t
hed_ptx_take_u32(struct hed_ptx_parser *p)
{
    const struct hed_ptx_value v = hed_ptx_take_value(p);

    if (v.kind != HED_PTX_VALUE_INT || v.bits > UINT32_MAX)
        hed_ptx_fail(p, "Integer constant out of range");
    return v.bits;
}

uint32_t
hed_ptx_take_range(struct hed_ptx_parser *p)
{
    hed_ptx_expect(p, '<');
    if (p->tok.kind != HED_PTX_TOKEN_INT)
        hed_ptx_syntax(p);
    if (p->tok.bits > UINT32_MAX)
        hed_ptx_fail(p, "Integer constant out of range");

    const uint32_t count = (uint32_t)p->tok.bits;

    hed_ptx_next(p);
    hed_ptx_expect(p, '>');
    return count;
}
