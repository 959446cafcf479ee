/* Random instructions that compute. See random_kernel.h. */
#include "ptx/exec/random_code.h"

#include <stdio.h>

#define PICK(k, list) ((list)[random_pick(k, sizeof(list) / sizeof((list)[0]))])

static const char *const numbers[] = {
    "0",           "1",    "2",  "3",  "4",    "7",          "8",         "15",       "16",
    "31",          "32",   "33", "63", "100",  "255",        "256",       "32767",    "32768",
    "65535",       "-1",   "-2", "-8", "-17",  "-32",        "-100",      "-32768",   "2147483647",
    "-2147483648", "4096", "12", "5",  "1000", "1073741824", "536870912", "16777216",
};

struct word {
    char text[24];
};

/* An operand of 16, 32 or 64 bits. */
static struct word
operand(struct random_kernel *k, char kind)
{
    static const char *const places[] = {"%x", "%y", "%t", "%l", "%n", "%z", "%x", "%t"};
    const unsigned what = random_pick(k, 10);
    struct word w;

    if (what < 2)
        snprintf(w.text, sizeof(w.text), "%s",
                 kind == 'h' ? numbers[random_pick(k, 17)] : PICK(k, numbers));
    else if (what < 5 && kind == 'r')
        snprintf(w.text, sizeof(w.text), "%s", PICK(k, places));
    else if (what < 6 && kind == 'r')
        snprintf(w.text, sizeof(w.text), "%%c%u", random_pick(k, 4));
    else
        snprintf(w.text, sizeof(w.text), "%%%c%u", kind, random_pick(k, kind == 'r' ? 8 : 4));
    return w;
}

static struct word
target(struct random_kernel *k, char kind)
{
    struct word w;

    snprintf(w.text, sizeof(w.text), "%%%c%u", kind, random_pick(k, kind == 'r' ? 8 : 4));
    return w;
}

void
random_guard(struct random_kernel *k, char guard[16])
{
    guard[0] = 0;
    if (random_pick(k, 5) == 0)
        snprintf(guard, 16, "@%s%%p%u ", random_pick(k, 2) ? "!" : "", random_pick(k, 4));
}

static void
make_compare(struct random_kernel *k, const char *guard, const char *to)
{
    static const char *const tests[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static const char *const floats[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                         "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    static const char *const joins[] = {"and", "or", "xor"};
    static const char *const types[] = {"u32", "s32", "u32", "s32", "u64", "s64", "u16", "s16"};
    const unsigned t = random_pick(k, 8);
    const char kind = t < 4 ? 'r' : t < 6 ? 'd' : 'h';

    if (random_pick(k, 8) == 0)
        random_line(k, "%ssetp.%s.f32 %s, %%f%u, %%f%u;", guard, PICK(k, floats), to,
                    random_pick(k, 4), random_pick(k, 4));
    else if (random_pick(k, 6) == 0)
        random_line(k, "%ssetp.%s.%s.%s %s, %s, %s, %s%%p%u;", guard, PICK(k, tests),
                    PICK(k, joins), types[t], to, operand(k, kind).text, operand(k, kind).text,
                    random_pick(k, 2) ? "!" : "", random_pick(k, 4));
    else
        random_line(k, "%ssetp.%s.%s %s, %s, %s;", guard, PICK(k, tests), types[t], to,
                    operand(k, kind).text, operand(k, kind).text);
}

void
random_condition(struct random_kernel *k, char name[24])
{
    const bool is_new = random_pick(k, 3) > 0;

    snprintf(name, 24, is_new ? "%%q2" : "%%p%u", random_pick(k, 4));
    if (is_new)
        make_compare(k, "", "%q2");
}

static void
make_predicates(struct random_kernel *k, const char *guard)
{
    static const char *const ops[] = {"and", "or", "xor"};

    if (random_pick(k, 5) == 0)
        random_line(k, "%snot.pred %%p%u, %%p%u;", guard, random_pick(k, 4), random_pick(k, 4));
    else
        random_line(k, "%s%s.pred %%p%u, %%p%u, %%p%u;", guard, PICK(k, ops), random_pick(k, 4),
                    random_pick(k, 4), random_pick(k, 4));
}

static void
make_convert(struct random_kernel *k, const char *guard)
{
    static const struct {
        const char *op;
        char to, from;
    } ops[] = {
        {"cvt.u64.u32", 'd', 'r'},     {"cvt.s64.s32", 'd', 'r'},     {"cvt.u64.s32", 'd', 'r'},
        {"cvt.u32.u64", 'r', 'd'},     {"cvt.s32.s64", 'r', 'd'},     {"cvt.u32.u16", 'r', 'h'},
        {"cvt.s32.s16", 'r', 'h'},     {"cvt.u16.u32", 'h', 'r'},     {"cvt.s16.s32", 'h', 'r'},
        {"cvt.u64.u16", 'd', 'h'},     {"cvt.s64.s16", 'd', 'h'},     {"cvt.u16.u64", 'h', 'd'},
        {"cvt.s32.s8", 'r', 'r'},      {"cvt.u32.u8", 'r', 'r'},      {"cvt.s64.s8", 'd', 'r'},
        {"cvt.s32.s16", 'r', 'r'},     {"cvt.u32.u16", 'r', 'r'},     {"cvt.sat.u16.u32", 'h', 'r'},
        {"cvt.sat.s16.s32", 'h', 'r'}, {"cvt.sat.u32.s64", 'r', 'd'}, {"cvt.rn.f32.s32", 'f', 'r'},
        {"cvt.rn.f32.u32", 'f', 'r'},  {"cvt.rzi.s32.f32", 'r', 'f'}, {"mov.b32", 'r', 'f'},
        {"mov.b32", 'f', 'r'},         {"mov.u32", 'r', 'r'},         {"mov.b64", 'd', 'd'},
        {"mov.f32", 'f', 'f'},         {"neg.s32", 'r', 'r'},         {"not.b32", 'r', 'r'},
        {"abs.s32", 'r', 'r'},         {"neg.s64", 'd', 'd'},         {"not.b64", 'd', 'd'},
        {"popc.b32", 'r', 'r'},        {"clz.b32", 'r', 'r'},         {"neg.s16", 'h', 'h'},
        {"neg.f32", 'f', 'f'},         {"abs.f32", 'f', 'f'},         {"cvt.u64.u32", 'd', 'r'},
        {"cvt.s64.s32", 'd', 'r'},     {"cvt.u64.u32", 'd', 'r'},     {"cvt.s64.s32", 'd', 'r'},
    };
    const unsigned o = random_pick(k, sizeof(ops) / sizeof(ops[0]));
    struct word from = ops[o].from == 'r' ? operand(k, 'r') : target(k, ops[o].from);

    if (from.text[0] != '%')
        from = target(k, 'r');
    random_line(k, "%s%s %s, %s;", guard, ops[o].op, target(k, ops[o].to).text, from.text);
}

static void
make_integer(struct random_kernel *k, const char *guard)
{
    static const struct {
        const char *op;
        char to, a, b;
    } ops[] = {
        {"add.u32", 'r', 'r', 'r'},      {"add.s32", 'r', 'r', 'r'},
        {"sub.u32", 'r', 'r', 'r'},      {"sub.s32", 'r', 'r', 'r'},
        {"mul.lo.u32", 'r', 'r', 'r'},   {"mul.lo.s32", 'r', 'r', 'r'},
        {"mul.hi.u32", 'r', 'r', 'r'},   {"mul.hi.s32", 'r', 'r', 'r'},
        {"and.b32", 'r', 'r', 'r'},      {"or.b32", 'r', 'r', 'r'},
        {"xor.b32", 'r', 'r', 'r'},      {"min.u32", 'r', 'r', 'r'},
        {"min.s32", 'r', 'r', 'r'},      {"max.u32", 'r', 'r', 'r'},
        {"max.s32", 'r', 'r', 'r'},      {"shl.b32", 'r', 'r', 'r'},
        {"shr.u32", 'r', 'r', 'r'},      {"shr.s32", 'r', 'r', 'r'},
        {"add.u64", 'd', 'd', 'd'},      {"sub.s64", 'd', 'd', 'd'},
        {"mul.lo.u64", 'd', 'd', 'd'},   {"and.b64", 'd', 'd', 'd'},
        {"or.b64", 'd', 'd', 'd'},       {"xor.b64", 'd', 'd', 'd'},
        {"min.s64", 'd', 'd', 'd'},      {"max.u64", 'd', 'd', 'd'},
        {"shl.b64", 'd', 'd', 'r'},      {"shr.u64", 'd', 'd', 'r'},
        {"shr.s64", 'd', 'd', 'r'},      {"mul.wide.u32", 'd', 'r', 'r'},
        {"mul.wide.s32", 'd', 'r', 'r'}, {"mul.wide.u16", 'r', 'h', 'h'},
        {"mul.wide.s16", 'r', 'h', 'h'}, {"add.u16", 'h', 'h', 'h'},
        {"sub.u16", 'h', 'h', 'h'},      {"mul.lo.u16", 'h', 'h', 'h'},
        {"and.b16", 'h', 'h', 'h'},      {"xor.b16", 'h', 'h', 'h'},
        {"min.s16", 'h', 'h', 'h'},      {"max.u16", 'h', 'h', 'h'},
        {"shl.b16", 'h', 'h', 'r'},      {"shr.s16", 'h', 'h', 'r'},
        {"shr.u16", 'h', 'h', 'r'},      {"div.u32", 'r', 'r', '1'},
        {"rem.u32", 'r', 'r', '1'},      {"div.s32", 'r', 'r', '1'},
        {"rem.s32", 'r', 'r', '1'},
    };
    const unsigned o = random_pick(k, sizeof(ops) / sizeof(ops[0]));
    struct word b;

    if (ops[o].b == '1')
        snprintf(b.text, sizeof(b.text), "%u", 1 + random_pick(k, 40));
    else
        b = operand(k, ops[o].b);
    random_line(k, "%s%s %s, %s, %s;", guard, ops[o].op, target(k, ops[o].to).text,
                operand(k, ops[o].a).text, b.text);
}

static void
make_three(struct random_kernel *k, const char *guard)
{
    static const struct {
        const char *op;
        char to, a, b, c;
    } ops[] = {
        {"mad.lo.u32", 'r', 'r', 'r', 'r'},     {"mad.lo.s32", 'r', 'r', 'r', 'r'},
        {"mad.lo.u64", 'd', 'd', 'd', 'd'},     {"mad.wide.u32", 'd', 'r', 'r', 'd'},
        {"mad.wide.s32", 'd', 'r', 'r', 'd'},   {"mad.wide.u16", 'r', 'h', 'h', 'r'},
        {"selp.u32", 'r', 'r', 'r', 'p'},       {"selp.u64", 'd', 'd', 'd', 'p'},
        {"selp.u16", 'h', 'h', 'h', 'p'},       {"selp.f32", 'f', 'f', 'f', 'p'},
        {"selp.b32", 'r', 'r', 'r', 'p'},       {"bfe.u32", 'r', 'r', 'r', 'r'},
        {"shf.l.wrap.b32", 'r', 'r', 'r', 'r'}, {"slct.u32.s32", 'r', 'r', 'r', 'r'},
        {"prmt.b32", 'r', 'r', 'r', 'r'},       {"sad.u32", 'r', 'r', 'r', 'r'},
    };
    const unsigned o = random_pick(k, sizeof(ops) / sizeof(ops[0]));
    const struct word c = ops[o].c == 'p' ? target(k, 'p') : operand(k, ops[o].c);
    const bool is_float = ops[o].a == 'f';

    random_line(k, "%s%s %s, %s, %s, %s;", guard, ops[o].op, target(k, ops[o].to).text,
                is_float ? target(k, 'f').text : operand(k, ops[o].a).text,
                is_float ? target(k, 'f').text : operand(k, ops[o].b).text, c.text);
}

static void
make_float(struct random_kernel *k, const char *guard)
{
    static const char *const ops[] = {"add.f32",    "sub.f32", "mul.f32", "add.rn.f32",
                                      "mul.rn.f32", "min.f32", "max.f32", "div.rn.f32"};
    const unsigned a = random_pick(k, 4), b = random_pick(k, 4), to = random_pick(k, 4);

    if (random_pick(k, 2))
        random_line(k, "%sfma.rn.f32 %%f%u, %%f%u, %%f%u, %%f%u;", guard, to, a, b,
                    random_pick(k, 4));
    else if (random_pick(k, 6) == 0)
        random_line(k, "%smov.f32 %%f%u, 0f%s;", guard, to,
                    random_pick(k, 2)   ? "7FC00001"
                    : random_pick(k, 2) ? "3F800000"
                                        : "FF800000");
    else
        random_line(k, "%s%s %%f%u, %%f%u, %%f%u;", guard, PICK(k, ops), to, a, b);
}

/* What keeps steps from lane to lane. */
static void
make_linear(struct random_kernel *k, const char *guard)
{
    static const char *const sums[] = {"add.u32", "sub.u32",    "add.s32",
                                       "sub.s32", "mul.lo.u32", "mul.lo.s32"};
    static const char *const wide[] = {"add.u64", "sub.u64", "mul.lo.u64", "mul.lo.s64"};
    static const char *const widen[] = {"mul.wide.u32", "mul.wide.s32"};
    static const char *const convert[] = {"cvt.u64.u32", "cvt.s64.s32", "cvt.u64.s32"};
    static const char *const places[] = {"%x", "%y", "%t", "%l", "%z", "%c0", "%c1", "%n"};
    const char *to = random_pick(k, 2) ? "r" : "d";
    const struct word r = target(k, 'r'), d = target(k, 'd');
    const bool near = random_pick(k, 2);

    switch (random_pick(k, 8)) {
    case 0:
        random_line(k, "%smov.u32 %s, %s;", guard, r.text, PICK(k, places));
        break;
    case 1:
        random_line(k, "%s%s %s, %s, %s;", guard, PICK(k, sums), r.text, PICK(k, places),
                    near ? PICK(k, places) : PICK(k, numbers));
        break;
    case 2:
        random_line(k, "%s%s %s, %s, %s;", guard, PICK(k, sums), r.text, target(k, 'r').text,
                    near ? PICK(k, places) : PICK(k, numbers));
        break;
    case 3:
        random_line(k, "%s%s %s, %s, %s;", guard, PICK(k, wide), d.text, target(k, 'd').text,
                    near ? target(k, 'd').text : PICK(k, numbers));
        break;
    case 4:
        random_line(k, "%s%s %s, %s, %s;", guard, PICK(k, widen), d.text, operand(k, 'r').text,
                    PICK(k, numbers));
        break;
    case 5:
        random_line(k, "%s%s %s, %s;", guard, PICK(k, convert), d.text,
                    near ? PICK(k, places) : target(k, 'r').text);
        break;
    case 6:
        random_line(k, "%smad.wide.%s32 %s, %s, %s, %s;", guard, near ? "u" : "s", d.text,
                    target(k, 'r').text, PICK(k, numbers), target(k, 'd').text);
        break;
    default:
        random_line(k, "%s%s.b%s %%%s%u, %%%s%u, %u;", guard, near ? "shl" : "and",
                    to[0] == 'r' ? "32" : "64", to, random_pick(k, 4), to, random_pick(k, 4),
                    near ? random_pick(k, 12) : (1u << random_pick(k, 31)) - random_pick(k, 2));
    }
}

void
random_instruction(struct random_kernel *k)
{
    static const char *const special[] = {"%tid.x",  "%tid.y",    "%ntid.x", "%ntid.y", "%ctaid.x",
                                          "%laneid", "%nctaid.x", "%tid.x",  "%warpid"};
    const unsigned what = random_pick(k, 20);
    char guard[16];

    random_guard(k, guard);
    if (k->linear && random_pick(k, 3))
        make_linear(k, guard);
    else if (what < 8)
        make_integer(k, guard);
    else if (what < 11)
        make_convert(k, guard);
    else if (what < 13)
        make_three(k, guard);
    else if (what < 15)
        make_float(k, guard);
    else if (what < 17)
        make_compare(k, guard, target(k, 'p').text);
    else if (what < 18)
        make_predicates(k, guard);
    else if (what < 19)
        random_line(k, "%smov.u32 %%r%u, %s;", guard, random_pick(k, 8), PICK(k, special));
    else
        random_line(k, "%smov.u32 %%r%u, %s;", guard, random_pick(k, 8), operand(k, 'r').text);
}

void
random_registers(struct random_kernel *k)
{
    static const char *const special[] = {"%tid.x", "%tid.y", "%ctaid.x", "%laneid", "%ntid.x"};

    random_line(k, "mov.u32 %%z, %s;", PICK(k, special));
    for (unsigned i = 0; i < 4; i++) {
        random_line(k, "mov.u32 %%c%u, 0; mov.u32 %%m%u, 0;", i, i);
        random_line(k, "mov.u32 %%r%u, %s;", i, PICK(k, special));
        random_line(k, "ld.global.u32 %%r%u, [%%in+%u];", i + 4, i * 4);
        random_line(k, "cvt.u64.u32 %%d%u, %s;", i, i & 1 ? "%t" : "%n");
        random_line(k, "cvt.u16.u32 %%h%u, %s;", i, i & 1 ? "%x" : "%n");
        random_line(k, "setp.gt.u32 %%p%u, %s, %u; mov.pred %%q%u, %%p%u;", i, i & 1 ? "%t" : "%n",
                    random_pick(k, 60), i, i);
        random_line(k, "mov.b32 %%f%u, %%r%u;", i, i + 4);
        random_line(k, "cvt.f64.f32 %%g%u, %%f%u;", i, i);
    }
    random_line(k, "mul.wide.u32 %%a0, %%t, 4; add.u64 %%a1, %%in, %%a0;");
    random_line(k, "ld.global.u32 %%r6, [%%a1]; ld.global.f32 %%f2, [%%a1+64];");
}
