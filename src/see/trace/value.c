/* Values as text and JSON.
 *
 * What is read comes out of a file. Depth and steps are bounded, so that types which contain
 * themselves, or arrays of nothing, end; a count is followed only while bytes are there.
 */
#include "see/trace/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/names.h"
#include "base/str.h"
#include "see/trace/schema.h"

#define TEXT_ITEMS 8   /* of an array, in text */
#define JSON_ITEMS 256 /* the same in JSON */
#define TEXT_LETTERS 256
#define JSON_LETTERS 65536
#define TEXT_BYTES 32 /* of raw data */
#define JSON_BYTES 4096

static void put_value(struct hed_value_out *o, const struct hed_schema_type *t, unsigned depth);
static void put_members(struct hed_value_out *o, const struct hed_schema_record *r, unsigned depth,
                        bool *first);

struct hed_value_out
hed_value_over(const void *p, size_t n, struct hed_buf *buf, bool json)
{
    return (struct hed_value_out){
        .dec = hed_dec_over(p, n, NULL),
        .buf = buf,
        .json = json,
        .steps = 4096 + 16 * (uint64_t)n,
    };
}

#define say(o, ...)                              \
    do {                                         \
        if ((o)->buf)                            \
            hed_buf_addf((o)->buf, __VA_ARGS__); \
    } while (0)

void
hed_value_raw(struct hed_value_out *o, const char *text)
{
    if (o->buf)
        hed_buf_add(o->buf, text, strlen(text));
}

static void
fail_value(struct hed_value_out *o, int err)
{
    if (!o->dec.err)
        o->dec.err = err;
}

void
hed_value_lament(struct hed_value_out *o)
{
    const char *quote = o->json ? "\"" : "";

    say(o, "%s<%s>%s", quote,
        o->dec.err == HED_ETRUNC    ? "cut"
        : o->dec.err == HED_ENOTSUP ? "unknown type"
                                    : "malformed",
        quote);
}

void
hed_value_name(struct hed_value_out *o, bool *first, const char *name)
{
    if (!*first)
        hed_value_raw(o, o->json ? "," : ", ");
    *first = false;
    say(o, o->json ? "\"%s\":" : "%s=", name);
}

/* May another value be read here? If not, the error says why. */
static bool
enter_value(struct hed_value_out *o, unsigned depth)
{
    if (o->dec.err)
        return false;
    if (depth > HED_VALUE_DEPTH_MAX || o->steps == 0) {
        fail_value(o, HED_ELIMIT);
        return false;
    }
    o->steps--;
    return true;
}

/* ---- bytes and letters ----------------------------------------------------------------------- */

static void
put_hex(struct hed_value_out *o, const uint8_t *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char pair[2];

    for (size_t i = 0; o->buf && i < n; i++) {
        pair[0] = digits[p[i] >> 4];
        pair[1] = digits[p[i] & 15];
        hed_buf_add(o->buf, pair, 2);
    }
}

static void
put_quoted(struct hed_value_out *o, const uint8_t *p, size_t stored, uint64_t length)
{
    const size_t limit = o->json ? JSON_LETTERS : TEXT_LETTERS;
    const size_t n = stored < limit ? stored : limit;

    if (!o->buf)
        return;
    hed_value_raw(o, "\"");
    hed_str_escape(o->buf, (const char *)p, n);
    hed_value_raw(o, n < length ? (o->json ? "...\"" : "\"...") : "\"");
}

static bool
all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i])
            return false;
    }
    return true;
}

/* Is this a character array with a string in it? Strings end in zeros; identifiers that happen to
 * begin with letters do not.
 */
static bool
is_string(const uint8_t *p, size_t n)
{
    const size_t length = strnlen((const char *)p, n);

    for (size_t i = 0; i < length; i++) {
        if (p[i] < 0x20 || p[i] == 0x7f)
            return false;
    }
    if (length == 0)
        return all_zero(p, n);
    return length < n && (n > 16 || all_zero(p + length, n - length));
}

/* n bytes that lie in the record: a string, or hexadecimal. */
static void
put_bytes(struct hed_value_out *o, size_t n, bool letters)
{
    const uint8_t *p = hed_get_span(&o->dec, n);

    if (!p) {
        hed_value_lament(o);
        return;
    }
    if (letters && is_string(p, n)) {
        const size_t length = strnlen((const char *)p, n);

        put_quoted(o, p, length, length);
        return;
    }

    const size_t limit = o->json ? JSON_BYTES : TEXT_BYTES;

    hed_value_raw(o, o->json ? "\"" : "0x");
    if (all_zero(p, n) && !o->json) {
        say(o, "0 (%zu bytes)", n);
        return;
    }
    put_hex(o, p, n < limit ? n : limit);
    hed_value_raw(o, n > limit ? "..." : "");
    hed_value_raw(o, o->json ? "\"" : "");
}

static void
put_bulk(struct hed_value_out *o)
{
    const uint64_t count = hed_get_u64(&o->dec);
    const uint32_t stored = hed_get_u32(&o->dec);
    const size_t limit = o->json ? JSON_BYTES : TEXT_BYTES;
    const size_t shown = stored < limit ? stored : limit;

    if (!o->dec.err && count == HED_PACK_NULL64) {
        hed_value_raw(o, o->json ? "null" : "NULL");
        return;
    }

    const uint8_t *p = o->dec.err ? NULL : hed_get_span(&o->dec, stored);

    if (!p) {
        hed_value_lament(o);
        return;
    }
    say(o, o->json ? "{\"bytes\":%" PRIu64 : "%" PRIu64 " bytes", count);
    if (stored) {
        hed_value_raw(o, o->json ? ",\"data\":\"" : ": ");
        put_hex(o, p, shown);
        hed_value_raw(o, o->json ? "\"" : shown < count ? "..." : "");
    }
    hed_value_raw(o, o->json ? "}" : "");
}

static void
put_field_text(struct hed_value_out *o)
{
    const uint32_t length = hed_get_u32(&o->dec);
    const uint32_t stored = hed_get_u32(&o->dec);

    if (!o->dec.err && length == HED_PACK_NULL32) {
        hed_value_raw(o, o->json ? "null" : "NULL");
        return;
    }

    const uint8_t *p = o->dec.err ? NULL : hed_get_span(&o->dec, stored);

    if (p)
        put_quoted(o, p, stored, length);
    else
        hed_value_lament(o);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t
get_field_number(struct hed_value_out *o, enum hed_schema_code code)
{
    switch (code) {
    case HED_CODE_U8:
        return hed_get_u8(&o->dec);
    case HED_CODE_I8:
        return (uint64_t)(int64_t)(int8_t)hed_get_u8(&o->dec);
    case HED_CODE_U16:
        return hed_get_u16(&o->dec);
    case HED_CODE_I16:
        return (uint64_t)(int64_t)(int16_t)hed_get_u16(&o->dec);
    case HED_CODE_U32:
    case HED_CODE_X32:
        return hed_get_u32(&o->dec);
    case HED_CODE_I32:
    case HED_CODE_ENUM:
        return (uint64_t)(int64_t)(int32_t)hed_get_u32(&o->dec);
    default:
        return hed_get_u64(&o->dec);
    }
}

static void
put_float(struct hed_value_out *o, enum hed_schema_code code)
{
    const bool single = code == HED_CODE_F32;
    const double v = single ? (double)hed_get_f32(&o->dec) : hed_get_f64(&o->dec);
    const char *quote = o->json && !isfinite(v) ? "\"" : "";
    char text[40];

    if (o->dec.err) {
        hed_value_lament(o);
        return;
    }
    /* As few digits as say exactly this number. */
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v)
            break;
    }
    say(o, "%s%s%s", quote, text, quote);
}

static void
put_enum(struct hed_value_out *o, const struct hed_schema_type *t, int32_t v)
{
    const struct hed_enum_value *e = t->values ? hed_enum_find(t->values, v) : NULL;

    if (e)
        say(o, o->json ? "\"%s\"" : "%s", e->name);
    else
        say(o, "%" PRId32, v);
}

static void
put_handle(struct hed_value_out *o, const struct hed_schema_type *t, uint64_t v)
{
    const bool stream = strcmp(t->name, "stream") == 0;

    if (stream && !o->has_stream) {
        o->has_stream = true;
        o->stream = v;
    }
    if (o->json)
        say(o, "\"0x%" PRIx64 "\"", v);
    else if (stream && v <= 2)
        say(o, "stream#%s", v == 0 ? "default" : v == 1 ? "legacy" : "per-thread");
    else if (v == 0)
        hed_value_raw(o, "NULL");
    else
        say(o, "%s#0x%" PRIx64, t->name, v);
}

static void
put_field_number(struct hed_value_out *o, const struct hed_schema_type *t)
{
    const uint64_t v = get_field_number(o, t->code);

    if (o->dec.err) {
        hed_value_lament(o);
        return;
    }
    switch (t->code) {
    case HED_CODE_I8:
    case HED_CODE_I16:
    case HED_CODE_I32:
    case HED_CODE_I64:
        say(o, "%" PRId64, (int64_t)v);
        return;
    case HED_CODE_ENUM:
        put_enum(o, t, (int32_t)v);
        return;
    case HED_CODE_HANDLE:
        put_handle(o, t, v);
        return;
    case HED_CODE_POINTER:
        if (v == 0) {
            hed_value_raw(o, o->json ? "null" : "NULL");
            return;
        }
        __attribute__((fallthrough));
    case HED_CODE_X32:
    case HED_CODE_X64:
        say(o, o->json ? "\"0x%" PRIx64 "\"" : "0x%" PRIx64, v);
        return;
    default:
        say(o, "%" PRIu64, v);
    }
}

/* ---- what is made of others ------------------------------------------------------------------ */

/* `stored` values are here of `count` there were. */
static void
put_list(struct hed_value_out *o, const struct hed_schema_type *inner, uint32_t count,
         uint32_t stored, unsigned depth)
{
    struct hed_buf *buf = o->buf;
    const uint32_t limit = o->json ? JSON_ITEMS : TEXT_ITEMS;
    const uint32_t shown = stored < limit ? stored : limit;

    if (o->json && shown < count)
        say(o, "{\"count\":%" PRIu32 ",\"items\":", count);
    hed_value_raw(o, "[");
    for (uint32_t i = 0; i < stored && !o->dec.err; i++) {
        if (i == shown)
            o->buf = NULL;
        if (i)
            hed_value_raw(o, o->json ? "," : ", ");
        put_value(o, inner, depth + 1);
    }
    o->buf = buf;
    if (!o->json && shown < count)
        say(o, "%s... %" PRIu32 " in all", shown ? ", " : "", count);
    hed_value_raw(o, o->json && shown < count ? "]}" : "]");
}

static bool
is_byte(const struct hed_schema_type *t)
{
    return t->code == HED_CODE_U8 || t->code == HED_CODE_I8;
}

static void
put_many(struct hed_value_out *o, const struct hed_schema_type *t, unsigned depth)
{
    const uint32_t count = hed_get_u32(&o->dec);
    const uint32_t stored = hed_get_u32(&o->dec);

    if (!o->dec.err && stored > count)
        fail_value(o, HED_EFORMAT);
    if (o->dec.err)
        hed_value_lament(o);
    else if (count == HED_PACK_NULL32)
        hed_value_raw(o, o->json ? "null" : "NULL");
    else if (is_byte(t->inner) && stored == count)
        put_bytes(o, stored, t->inner->code == HED_CODE_I8);
    else
        put_list(o, t->inner, count, stored, depth);
}

static void
put_ref(struct hed_value_out *o, const struct hed_schema_type *t, unsigned depth)
{
    const uint8_t present = hed_get_u8(&o->dec);

    if (o->dec.err)
        hed_value_lament(o);
    else if (present)
        put_value(o, t->inner, depth + 1);
    else
        hed_value_raw(o, o->json ? "null" : "NULL");
}

/* A field nobody wants to see while it is zero. */
static bool
is_filler(const char *name)
{
    return strncmp(name, "reserved", 8) == 0 || strncmp(name, "pad", 3) == 0 || name[0] == '_';
}

/* Reads a value and tells whether all its bytes are zero; if not, goes back to where it began. */
static bool
skip_zero(struct hed_value_out *o, const struct hed_schema_type *t, unsigned depth)
{
    const struct hed_dec before = o->dec;
    struct hed_buf *buf = o->buf;

    o->buf = NULL;
    put_value(o, t, depth);
    o->buf = buf;
    if (!o->dec.err && all_zero(before.at, (size_t)(o->dec.at - before.at)))
        return true;
    o->dec = before;
    return false;
}

static void
put_member(struct hed_value_out *o, const struct hed_schema_field *f, unsigned depth, bool *first)
{
    if (is_filler(f->name) && skip_zero(o, &f->type, depth))
        return;
    /* What has no name has its members among those around it, as in C. */
    if (!*f->name && f->type.code == HED_CODE_RECORD) {
        put_members(o, f->type.record, depth, first);
        return;
    }
    hed_value_name(o, first, *f->name ? f->name : "?");
    put_value(o, &f->type, depth);
}

static void
put_case(struct hed_value_out *o, const struct hed_schema_record *r, unsigned depth, bool *first)
{
    const uint16_t which = hed_get_u16(&o->dec);

    if (!o->dec.err && which > r->field_count)
        fail_value(o, HED_EFORMAT);
    if (o->dec.err) {
        hed_value_name(o, first, "?");
        hed_value_lament(o);
    } else if (which > 0) {
        put_member(o, &r->fields[which - 1], depth, first);
    } else {
        hed_value_name(o, first, "raw");
        put_bytes(o, r->size, false);
    }
}

static void
put_members(struct hed_value_out *o, const struct hed_schema_record *r, unsigned depth, bool *first)
{
    if (!enter_value(o, depth) || (r->keyword != 's' && r->keyword != 'u')) {
        fail_value(o, HED_ENOTSUP);
        hed_value_name(o, first, "?");
        hed_value_lament(o);
        return;
    }
    if (r->keyword == 'u') {
        put_case(o, r, depth + 1, first);
        return;
    }
    for (uint32_t i = 0; i < r->field_count && !o->dec.err; i++)
        put_member(o, &r->fields[i], depth + 1, first);
}

static void
put_value(struct hed_value_out *o, const struct hed_schema_type *t, unsigned depth)
{
    bool first = true;

    if (t->code == HED_CODE_BAD)
        fail_value(o, HED_ENOTSUP);
    if (!enter_value(o, depth)) {
        hed_value_lament(o);
        return;
    }
    switch (t->code) {
    case HED_CODE_F32:
    case HED_CODE_F64:
        put_float(o, t->code);
        return;
    case HED_CODE_RECORD:
        hed_value_raw(o, "{");
        put_members(o, t->record, depth, &first);
        hed_value_raw(o, "}");
        return;
    case HED_CODE_ARRAY:
        if (is_byte(t->inner))
            put_bytes(o, t->count, t->inner->code == HED_CODE_I8);
        else
            put_list(o, t->inner, t->count, t->count, depth);
        return;
    case HED_CODE_REF:
        put_ref(o, t, depth);
        return;
    case HED_CODE_MANY:
        put_many(o, t, depth);
        return;
    case HED_CODE_BULK:
        put_bulk(o);
        return;
    case HED_CODE_TEXT:
        put_field_text(o);
        return;
    default:
        put_field_number(o, t);
    }
}

void
hed_value_put(struct hed_value_out *o, const struct hed_schema_type *t)
{
    put_value(o, t, 0);
}
