/* Parsing a schema: one pass that counts and names, one that fills in.
 *
 *     text -> lines -> records (names only) -> sort -> fields -> calls by number
 *
 * Names are known before any field is read, so the order of the lines does not matter.
 */
#include "see/trace/schema.h"

#include <ctype.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/names.h"
#include "gen/cuda_names.h"
#include "gen/nvml_names.h"

#define CALL_MAX 65535 /* numbers are u16 */

/* A piece of the text. */
struct span {
    const char *at;
    size_t n;
};

struct parser {
    struct hed_arena *arena;
    struct hed_schema *schema;
    int err; /* sticky: 0 or HED_ELIMIT */
};

static void *
alloc_parsed(struct parser *p, size_t count, size_t size)
{
    void *m = NULL;
    size_t bytes;

    if (!p->err && !__builtin_mul_overflow(count, size, &bytes))
        m = hed_arena_alloc(p->arena, bytes, alignof(max_align_t));
    if (!m) {
        p->err = HED_ELIMIT;
        return NULL;
    }
    memset(m, 0, bytes);
    return m;
}

/* Cuts the part before the first `stop` off s; the stop itself is dropped. */
static struct span
cut_word(struct span *s, char stop)
{
    struct span head = {s->at, 0};

    while (head.n < s->n && head.at[head.n] != stop)
        head.n++;

    const size_t gone = head.n + (head.n < s->n ? 1 : 0);

    if (gone)
        s->at += gone;
    s->n -= gone;
    return head;
}

static bool
span_is(struct span s, const char *word)
{
    return s.n == strlen(word) && memcmp(s.at, word, s.n) == 0;
}

static bool
is_name(struct span s)
{
    if (s.n == 0 || s.n > HED_SCHEMA_NAME_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.at[i];

        if (c >= 0x80 || (!isalnum(c) && c != '_' && c != '.'))
            return false;
    }
    return true;
}

static const char *
copy_span(struct parser *p, struct span s)
{
    char *name = alloc_parsed(p, s.n + 1, 1);

    if (!name)
        return "";
    if (s.n)
        memcpy(name, s.at, s.n);
    return name;
}

static bool
number_of_span(struct span s, uint32_t *out)
{
    uint64_t v = 0;

    if (s.n == 0 || s.n > 10)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.at[i] < '0' || s.at[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(s.at[i] - '0');
    }
    *out = (uint32_t)v;
    return v <= UINT32_MAX;
}

static size_t
count_words(struct span line)
{
    size_t n = 0;

    for (; line.n; n++)
        cut_word(&line, ' ');
    return n;
}

/* ---- codes ----------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    enum hed_schema_code code;
} plain_codes[] = {
    {"u8", HED_CODE_U8},     {"u16", HED_CODE_U16}, {"u32", HED_CODE_U32}, {"u64", HED_CODE_U64},
    {"i8", HED_CODE_I8},     {"i16", HED_CODE_I16}, {"i32", HED_CODE_I32}, {"i64", HED_CODE_I64},
    {"f32", HED_CODE_F32},   {"f64", HED_CODE_F64}, {"x32", HED_CODE_X32}, {"x64", HED_CODE_X64},
    {"p", HED_CODE_POINTER}, {"b", HED_CODE_BULK},  {"z", HED_CODE_TEXT},
};

static int
by_name(const void *a, const void *b)
{
    const struct hed_schema_record *x = a;
    const struct hed_schema_record *y = b;
    const int order = strcmp(x->name, y->name);

    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* The first record of a name; the table is sorted by now. */
static struct hed_schema_record *
find_record(const struct hed_schema *s, const char *name, char keyword)
{
    size_t low = 0;
    size_t high = s->record_count;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (strcmp(s->records[mid].name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == s->record_count || strcmp(s->records[low].name, name) != 0 ||
        s->records[low].keyword != keyword)
        return NULL;
    return &s->records[low];
}

static void
named_code(struct parser *p, struct span s, struct hed_schema_type *t)
{
    const struct span rest = {s.at + 2, s.n - 2};

    if (!is_name(rest))
        return;
    t->name = copy_span(p, rest);
    if (s.at[0] == 'h') {
        t->code = HED_CODE_HANDLE;
    } else if (s.at[0] == 'e') {
        t->code = HED_CODE_ENUM;
        t->values = hed_enums_find(p->schema->enums, p->schema->enum_count, t->name);
    } else {
        t->record = find_record(p->schema, t->name, s.at[0] == 's' ? 's' : 'u');
        t->code = t->record ? HED_CODE_RECORD : HED_CODE_BAD;
    }
}

/* t stays BAD for whatever is not understood. */
static void
parse_code(struct parser *p, struct span s, unsigned nest, struct hed_schema_type *t)
{
    if (s.n == 0 || nest > HED_SCHEMA_NEST_MAX)
        return;
    if (s.at[0] == '[' || s.at[0] == '*' || s.at[0] == '@') {
        struct hed_schema_type *inner = alloc_parsed(p, 1, sizeof(*inner));
        struct span rest = {s.at + 1, s.n - 1};

        if (!inner || (s.at[0] == '[' && !number_of_span(cut_word(&rest, ']'), &t->count)))
            return;
        parse_code(p, rest, nest + 1, inner);
        t->inner = inner;
        t->code = s.at[0] == '[' ? HED_CODE_ARRAY : s.at[0] == '*' ? HED_CODE_REF : HED_CODE_MANY;
        return;
    }
    if (s.n > 2 && s.at[1] == '.' && strchr("hesn", s.at[0])) {
        named_code(p, s, t);
        return;
    }
    for (size_t i = 0; i < sizeof(plain_codes) / sizeof(plain_codes[0]); i++) {
        if (span_is(s, plain_codes[i].word))
            t->code = plain_codes[i].code;
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The words left in line as fields; with_dir: each has a direction in front. */
static struct hed_schema_field *
parse_fields(struct parser *p, struct span line, bool with_dir, uint32_t *count)
{
    const size_t n = count_words(line);
    struct hed_schema_field *fields = alloc_parsed(p, n ? n : 1, sizeof(*fields));

    *count = 0;
    for (size_t i = 0; i < n && fields; i++) {
        struct span word = cut_word(&line, ' ');
        struct hed_schema_field *f = &fields[i];

        if (with_dir) {
            const struct span dir = cut_word(&word, ':');

            f->dir = dir.n == 1 && strchr("iob", dir.at[0]) ? dir.at[0] : 0;
        }

        const struct span name = cut_word(&word, ':');

        f->name = is_name(name) ? copy_span(p, name) : "";
        /* A name or direction that makes no sense: nothing is known about the value either. */
        if ((name.n == 0 || *f->name) && (!with_dir || (f->dir && name.n)))
            parse_code(p, word, 0, &f->type);
        *count = (uint32_t)i + 1;
    }
    return fields;
}

/* The line that begins at `at`. */
static struct span
line_from(struct span text, size_t at)
{
    struct span rest = {text.at + at, text.n - at};

    return cut_word(&rest, '\n');
}

static char
record_keyword(struct span word)
{
    return span_is(word, "struct") ? 's' : span_is(word, "union") ? 'u' : 0;
}

/* First pass: how many records and calls there may be. */
static void
count_schema_lines(struct parser *p, struct span text)
{
    size_t records = 0;
    size_t calls = 0;

    while (text.n) {
        struct span line = cut_word(&text, '\n');
        const struct span keyword = cut_word(&line, ' ');
        uint32_t n;

        records += record_keyword(keyword) != 0;
        if (span_is(keyword, "call") && number_of_span(cut_word(&line, ' '), &n) && n <= CALL_MAX &&
            n >= calls)
            calls = n + 1;
    }
    p->schema->records = alloc_parsed(p, records ? records : 1, sizeof(*p->schema->records));
    p->schema->calls = alloc_parsed(p, calls ? calls : 1, sizeof(*p->schema->calls));
    p->schema->call_count = calls;
}

/* Second pass: the records' names. */
static void
name_records(struct parser *p, struct span text)
{
    struct hed_schema *s = p->schema;
    size_t at = 0;

    while (at < text.n && !p->err) {
        struct span line = line_from(text, at);
        const size_t next = at + line.n + 1;
        const char keyword = record_keyword(cut_word(&line, ' '));
        const struct span name = cut_word(&line, ' ');

        if (keyword && is_name(name)) {
            struct hed_schema_record *r = &s->records[s->record_count++];

            r->name = copy_span(p, name);
            r->keyword = keyword;
            r->at = (uint32_t)at;
        }
        at = next;
    }
    if (!p->err)
        qsort(s->records, s->record_count, sizeof(*s->records), by_name);
}

static void
fill_record(struct parser *p, struct span text, struct hed_schema_record *r)
{
    struct span line = line_from(text, r->at);

    cut_word(&line, ' ');
    cut_word(&line, ' ');
    /* A union without a size cannot be read; one without fields never is. */
    if (r->keyword == 'u' && !number_of_span(cut_word(&line, ' '), &r->size))
        r->keyword = '?';
    r->fields = parse_fields(p, line, false, &r->field_count);
}

static void
parse_call(struct parser *p, struct span line)
{
    uint32_t n;

    if (!number_of_span(cut_word(&line, ' '), &n) || n >= p->schema->call_count ||
        p->schema->calls[n])
        return;

    const struct span name = cut_word(&line, ' ');
    struct hed_schema_call *c = is_name(name) ? alloc_parsed(p, 1, sizeof(*c)) : NULL;

    if (!c)
        return;
    c->name = copy_span(p, name);
    c->args = parse_fields(p, line, true, &c->arg_count);
    if (c->arg_count && !p->err) {
        const char *last = c->args[c->arg_count - 1].name;

        c->suffix = strcmp(last, "_ptsz") == 0 || strcmp(last, "_ptds") == 0 ? last : NULL;
    }
    p->schema->calls[n] = c;
}

/* `fails NUMBER RESULT argument...`: RESULT is * for any. After all calls are known. */
static void
parse_fails(struct parser *p, struct span line)
{
    const struct hed_schema *s = p->schema;
    uint32_t n;
    struct hed_schema_call *c =
        number_of_span(cut_word(&line, ' '), &n) && n < s->call_count ? s->calls[n] : NULL;
    struct hed_schema_fails *f = c ? alloc_parsed(p, 1, sizeof(*f)) : NULL;

    if (!f)
        return;

    const struct span result = cut_word(&line, ' ');

    f->any = span_is(result, "*");
    if (!f->any && !number_of_span(result, &f->result))
        return;
    while (line.n) {
        const struct span word = cut_word(&line, ' ');

        for (uint32_t i = 0; i < c->arg_count && i < 64; i++) {
            if (span_is(word, c->args[i].name) && c->args[i].dir != 'i')
                f->args |= UINT64_C(1) << i;
        }
    }
    f->next = c->fails;
    c->fails = f;
}

static int
parse_api(struct parser *p, struct span line)
{
    struct hed_schema *s = p->schema;
    const struct span keyword = cut_word(&line, ' ');
    const struct span name = cut_word(&line, ' ');

    if (!span_is(keyword, "api") || !is_name(name) || !is_name(line))
        return HED_EFORMAT;
    s->api = copy_span(p, name);
    if (span_is(name, "cuda")) {
        s->enums = hed_cuda_enums;
        s->enum_count = hed_cuda_enum_count;
    } else if (span_is(name, "nvml")) {
        s->enums = hed_nvml_enums;
        s->enum_count = hed_nvml_enum_count;
    }
    s->result = hed_enums_find(s->enums, s->enum_count, copy_span(p, line));
    return p->err;
}

static void
parse_lines(struct parser *p, struct span text, const char *keyword,
            void (*parse)(struct parser *p, struct span line))
{
    while (!p->err && text.n) {
        struct span line = cut_word(&text, '\n');

        if (span_is(cut_word(&line, ' '), keyword))
            parse(p, line);
    }
}

int
hed_schema_parse(const char *text, size_t size, struct hed_arena *arena,
                 const struct hed_schema **out, struct hed_why *why)
{
    struct parser p = {.arena = arena};
    struct span all = {text, size};

    p.schema = alloc_parsed(&p, 1, sizeof(*p.schema));
    if (p.schema && parse_api(&p, line_from(all, 0)) == HED_EFORMAT) {
        hed_why_set(why, "the schema does not begin with an api line");
        return HED_EFORMAT;
    }
    if (size > UINT32_MAX)
        p.err = HED_ELIMIT;
    if (!p.err)
        count_schema_lines(&p, all);
    if (!p.err)
        name_records(&p, all);
    for (size_t i = 0; !p.err && i < p.schema->record_count; i++)
        fill_record(&p, all, &p.schema->records[i]);
    parse_lines(&p, all, "call", parse_call);
    parse_lines(&p, all, "fails", parse_fails);
    if (p.err) {
        hed_why_set(why, "the schema is too large");
        return p.err;
    }
    *out = p.schema;
    return 0;
}

uint64_t
hed_schema_set(const struct hed_schema_call *c, int32_t result)
{
    uint64_t args = result == 0 ? UINT64_MAX : 0;

    for (const struct hed_schema_fails *f = c->fails; f && result != 0; f = f->next) {
        if (f->any || f->result == (uint32_t)result)
            args |= f->args;
    }
    return args;
}

const struct hed_schema_call *
hed_schema_call(const struct hed_schema *s, unsigned n)
{
    return s && n < s->call_count ? s->calls[n] : NULL;
}
