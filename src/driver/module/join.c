/* Joins several PTX modules into one text. This is how device code is linked here.
 *
 *   pass 1, all texts  : find the names that more than their own module sees, the newest header and
 *                        a suffix that no name has
 *   pass 2, each text  : copy its items. Left out are the header, the line tables of later texts,
 *                        declarations of what is already declared or defined, and definitions of
 *                        what an earlier text defines (mostly weak and common ones). A name that
 *                        only this module sees is renamed if another text has it too.
 *
 * An item is a declaration at the outermost level. This file is no parser: it copies what it does
 * not understand and leaves the complaint to the reader of the result. Of two strong definitions
 * the first stays, with a warning.
 *
 * Invariant: a renamed name equals no other name of the result. It is NAME$link<n>, where n differs
 * from text to text and is greater than the number after every "$link" in any of the texts. nvcc
 * itself writes names such as $str$2, so a plain number would not do.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "driver/module/image.h"
#include "kernel/fatbin.h"

/* ---- words ----------------------------------------------------------------------------------- */

struct words {
    const char *at, *end;
};

/* Skips blanks and comments. */
static void
skip_blank(struct words *w)
{
    while (w->at < w->end) {
        if (isspace((unsigned char)*w->at)) {
            w->at++;
        } else if (w->end - w->at >= 2 && w->at[0] == '/' && w->at[1] == '/') {
            const char *line = memchr(w->at, '\n', (size_t)(w->end - w->at));

            w->at = line ? line : w->end;
        } else if (w->end - w->at >= 2 && w->at[0] == '/' && w->at[1] == '*') {
            const char *close = memmem(w->at + 2, (size_t)(w->end - w->at - 2), "*/", 2);

            w->at = close ? close + 2 : w->end;
        } else {
            return;
        }
    }
}

/* The next word: a name, a number, a directive with its dot, a string, or one
 * other character. */
static bool
next_word(struct words *w, struct hed_bytes *out)
{
    skip_blank(w);
    if (w->at == w->end)
        return false;

    const char *start = w->at++;

    if (*start == '"') {
        while (w->at < w->end && *w->at != '"')
            w->at += *w->at == '\\' && w->end - w->at > 1 ? 2 : 1;
        w->at += w->at < w->end;
    } else if (*start == '.' || hed_ptx_is_name_char(*start)) {
        while (w->at < w->end && hed_ptx_is_name_char(*w->at))
            w->at++;
    }
    *out = (struct hed_bytes){(const uint8_t *)start, (size_t)(w->at - start)};
    return true;
}

static bool
word_is_name(struct hed_bytes b)
{
    return hed_ptx_is_name_char((char)b.data[0]) && !isdigit(b.data[0]);
}

/* ---- items ----------------------------------------------------------------------------------- */

enum linkage { LINK_NONE, LINK_EXTERN, LINK_VISIBLE, LINK_WEAK, LINK_COMMON };

struct item {
    struct hed_bytes text;
    struct hed_bytes name; /* the first name it declares; empty if there is none */
    enum linkage linkage;
    bool header;  /* .version, .target, .address_size */
    bool lines;   /* .file, .loc, .section: about the source code */
    bool code;    /* .func, .entry */
    bool entry;   /* .entry */
    bool defines; /* code with a body, or a variable that is not extern */
};

static void
skip_text_line(struct words *w)
{
    const char *line = memchr(w->at, '\n', (size_t)(w->end - w->at));

    w->at = line ? line + 1 : w->end;
}

/* Notes what a directive before the name of an item says about it. */
static void
note_directive(struct item *i, struct hed_bytes w)
{
    static const struct {
        const char *word;
        enum linkage linkage;
    } linkages[] = {{".extern", LINK_EXTERN},
                    {".visible", LINK_VISIBLE},
                    {".weak", LINK_WEAK},
                    {".common", LINK_COMMON}};

    for (size_t k = 0; k < sizeof linkages / sizeof linkages[0]; k++)
        if (hed_bytes_equal(w, linkages[k].word))
            i->linkage = linkages[k].linkage;
    i->entry |= hed_bytes_equal(w, ".entry");
    i->code |= hed_bytes_equal(w, ".func") || hed_bytes_equal(w, ".entry");
}

/* Takes a directive that ends with its line; false if this is none. */
static bool
take_line_item(struct words *w, struct hed_bytes first, struct item *out)
{
    out->header = hed_bytes_equal(first, ".version") || hed_bytes_equal(first, ".target") ||
                  hed_bytes_equal(first, ".address_size");
    out->lines = hed_bytes_equal(first, ".file") || hed_bytes_equal(first, ".loc") ||
                 hed_bytes_equal(first, "@");
    if (!out->header && !out->lines)
        return false;
    skip_text_line(w);
    return true;
}

static bool
next_item(struct words *w, struct item *out)
{
    struct hed_bytes word;
    unsigned depth = 0;
    bool body = false;

    *out = (struct item){.linkage = LINK_NONE};
    if (!next_word(w, &word))
        return false;

    const char *start = (const char *)word.data;

    if (!take_line_item(w, word, out)) {
        out->lines = hed_bytes_equal(word, ".section");
        do {
            const char c = (char)word.data[0];

            depth += c == '{' || c == '(' || c == '[';
            depth -= depth > 0 && (c == '}' || c == ')' || c == ']');
            if (depth == 0 && c == '.' && !out->name.size)
                note_directive(out, word);
            else if (depth == 0 && word_is_name(word) && !out->name.size)
                out->name = word;
            body |= depth == 1 && c == '{';
            if (depth == 0 && (c == ';' || (c == '}' && (out->code || out->lines))))
                break;
        } while (next_word(w, &word));
        out->defines = out->code ? body : out->linkage != LINK_EXTERN;
    }
    out->text = (struct hed_bytes){(const uint8_t *)start, (size_t)(w->at - start)};
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct name {
    struct hed_bytes text; /* points into one of the texts; empty if the entry is free */
    bool shared;           /* some text declares it with a linkage */
    enum linkage linkage;  /* of its first definition, if it is shared; else LINK_NONE */
    bool declared, defined;
    size_t renamed_in;         /* 1 + the last text in which it is renamed; 0: none */
    struct hed_bytes variable; /* the definition, if it is a variable with linkage */
};

struct names {
    struct name *slots;
    size_t size, used;   /* size is a power of two */
    uint64_t first_link; /* text i renames to NAME$link<first_link + i> */
};

static struct name *
slot_of(struct name *slots, size_t size, struct hed_bytes b)
{
    const uint32_t h = hed_str_hash((const char *)b.data, b.size);

    for (size_t at = h & (size - 1);; at = (at + 1) & (size - 1)) {
        struct name *n = &slots[at];

        if (!n->text.size || (n->text.size == b.size && memcmp(n->text.data, b.data, b.size) == 0))
            return n;
    }
}

/* The entry of a name, added if it is new. NULL: no memory. */
static struct name *
find_or_add_name(struct names *t, struct hed_bytes b)
{
    if (2 * t->used >= t->size) {
        const size_t size = t->size ? 2 * t->size : 256;
        struct name *slots = calloc(size, sizeof *slots);

        if (!slots)
            return NULL;
        for (size_t i = 0; i < t->size; i++)
            if (t->slots[i].text.size)
                *slot_of(slots, size, t->slots[i].text) = t->slots[i];
        free(t->slots);
        t->slots = slots;
        t->size = size;
    }

    struct name *n = slot_of(t->slots, t->size, b);

    if (!n->text.size) {
        n->text = b;
        t->used++;
    }
    return n;
}

/* ---- joining --------------------------------------------------------------------------------- */

static struct words
words_in_text(struct hed_bytes text)
{
    const char *at = (const char *)text.data;

    return (struct words){at, at + text.size};
}

#define LINK_SUFFIX "$link"

/* The first number after LINK_SUFFIX that no text uses. Numbers that do not fit into 32 bits are
 * ignored, because no renamed name gets one. */
static uint64_t
find_first_link(const struct hed_bytes *texts, size_t count)
{
    const size_t suffix = sizeof LINK_SUFFIX - 1;
    uint64_t first = 0;

    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = texts[i].data, *end = at + texts[i].size;

        while ((at = memmem(at, (size_t)(end - at), LINK_SUFFIX, suffix))) {
            uint64_t n = 0;

            for (at += suffix; at < end && isdigit(*at); at++)
                n = n > UINT32_MAX ? n : n * 10 + (*at - '0');
            if (n <= UINT32_MAX && n >= first)
                first = n + 1;
        }
    }
    return first;
}

/* Notes the names that a text declares for other texts too. */
static int
find_shared(struct names *t, struct hed_bytes text)
{
    struct words w = words_in_text(text);
    struct item i;

    while (next_item(&w, &i)) {
        if (!i.name.size || (i.linkage == LINK_NONE && !i.entry))
            continue;

        struct name *n = find_or_add_name(t, i.name);

        if (!n)
            return HED_ENOMEM;
        n->shared = true;
        if (i.defines && n->linkage == LINK_NONE) {
            n->linkage = i.linkage;
            n->variable = i.code ? (struct hed_bytes){NULL, 0} : i.text;
        }
    }
    return 0;
}

/* Finds the names without linkage that mean something else in another text: this text renames
 * them. */
static int
find_renamed(struct names *t, struct hed_bytes text, size_t number, bool *any)
{
    struct words w = words_in_text(text);
    struct item i;

    *any = false;
    while (next_item(&w, &i)) {
        if (!i.name.size || i.linkage != LINK_NONE || i.entry)
            continue;

        struct name *n = find_or_add_name(t, i.name);

        if (!n)
            return HED_ENOMEM;
        if (n->renamed_in != number + 1 && (n->shared || n->declared || n->defined)) {
            n->renamed_in = number + 1;
            *any = true;
        }
    }
    return 0;
}

/* Copies the item's text, renaming names. */
static void
copy_renamed(struct names *t, struct hed_bytes text, size_t number, struct hed_buf *out)
{
    struct words w = words_in_text(text);
    const char *done = w.at;
    struct hed_bytes word;

    while (next_word(&w, &word)) {
        if (!word_is_name(word) || slot_of(t->slots, t->size, word)->renamed_in != number + 1)
            continue;
        hed_buf_add(out, done, (size_t)(w.at - done));
        hed_buf_addf(out, LINK_SUFFIX "%" PRIu64, t->first_link + number);
        done = w.at;
    }
    hed_buf_add(out, done, (size_t)(w.end - done));
}

/* Copies the linkage of a declaration. A function that another text defines is no longer external,
 * so its declaration gets the linkage of the definition. Returns where the rest of the item
 * begins. */
static const char *
copy_linkage(const struct name *n, const struct item *i, struct hed_buf *out)
{
    const char *start = (const char *)i->text.data;
    const char *word = memmem(start, i->text.size, ".extern", 7);

    if (!i->code || i->linkage != LINK_EXTERN || n->linkage == LINK_NONE || !word)
        return start;
    hed_buf_add(out, start, (size_t)(word - start));
    hed_buf_addf(out, "%s", n->linkage == LINK_WEAK ? ".weak" : ".visible");
    return word + 7;
}

/* Writes an external declaration with the type of the definition. Compilers declare an array of
 * bytes of unknown size for what another text defines as an array of something else. */
static void
copy_declaration(struct hed_bytes definition, struct hed_buf *out)
{
    struct words w = words_in_text(definition);
    struct hed_bytes word;

    (void)next_word(&w, &word); /* the linkage */

    const char *start = w.at, *end = start;

    while (next_word(&w, &word) && !hed_bytes_equal(word, "=") && !hed_bytes_equal(word, ";"))
        end = w.at;
    hed_buf_addf(out, ".extern");
    hed_buf_add(out, start, (size_t)(end - start));
    hed_buf_addf(out, ";\n");
}

/* Has an earlier item said what this one says? Then it is left out. */
static bool
item_is_repeated(struct name *n, const struct item *i, size_t number)
{
    if (n->renamed_in == number + 1)
        return false;

    const bool drop = i->defines ? n->defined : n->declared || n->defined;

    if (drop && i->defines && i->linkage != LINK_WEAK && i->linkage != LINK_COMMON)
        hed_warn(DRIVER,
                 "%.*s is defined in two PTX modules that are linked: the first definition is used",
                 (int)n->text.size, (const char *)n->text.data);
    n->declared = true;
    n->defined |= i->defines;
    return drop;
}

static void
copy_item(struct names *t, const struct item *i, bool renamed, size_t number, struct hed_buf *out)
{
    const char *end = (const char *)i->text.data + i->text.size;
    const char *start = (const char *)i->text.data;
    const struct name *n = i->name.size && !i->lines ? slot_of(t->slots, t->size, i->name) : NULL;

    if (n && !i->code && i->linkage == LINK_EXTERN && n->variable.size) {
        copy_declaration(n->variable, out);
        return;
    }
    if (n)
        start = copy_linkage(n, i, out);

    const struct hed_bytes rest = {(const uint8_t *)start, (size_t)(end - start)};

    if (renamed)
        copy_renamed(t, rest, number, out);
    else
        hed_buf_add(out, rest.data, rest.size);
    hed_buf_add(out, "\n", 1);
}

static int
join_part(struct names *t, struct hed_bytes text, size_t number, struct hed_buf *out)
{
    struct words w = words_in_text(text);
    struct item i;
    bool any;
    const int err = find_renamed(t, text, number, &any);

    if (err != 0)
        return err;
    while (next_item(&w, &i)) {
        if (i.header || (i.lines && number > 0))
            continue;
        if (i.name.size && !i.lines &&
            item_is_repeated(slot_of(t->slots, t->size, i.name), &i, number))
            continue;
        copy_item(t, &i, any, number, out);
    }
    return out->err;
}

/* Writes a header with the newest version and target of all texts. */
static int
put_header(const struct hed_bytes *texts, size_t count, struct hed_buf *out, struct hed_why *why)
{
    struct hed_ptx_head newest = {0};

    for (size_t i = 0; i < count; i++) {
        struct hed_ptx_head h;

        if (!hed_ptx_begins(texts[i], &h)) {
            hed_why_set(why, "input %zu is not PTX", i);
            return HED_EFORMAT;
        }
        if (h.major > newest.major || (h.major == newest.major && h.minor > newest.minor)) {
            newest.major = h.major;
            newest.minor = h.minor;
        }
        if (h.arch.number > newest.arch.number ||
            (h.arch.number == newest.arch.number && h.arch.suffix > newest.arch.suffix))
            newest.arch = h.arch;
    }
    hed_buf_addf(out, ".version %u.%u\n.target sm_%u%.*s\n.address_size 64\n", newest.major,
                 newest.minor, newest.arch.number, newest.arch.suffix ? 1 : 0, &newest.arch.suffix);
    return 0;
}

int
hed_ptx_join(const struct hed_bytes *texts, size_t count, struct hed_buf *out, struct hed_why *why)
{
    struct names names = {0};
    int err = 0;

    if (count == 1) {
        hed_buf_add(out, texts[0].data, texts[0].size);
        return out->err;
    }
    names.first_link = find_first_link(texts, count);
    err = put_header(texts, count, out, why);
    for (size_t i = 0; i < count && err == 0; i++)
        err = find_shared(&names, texts[i]);
    for (size_t i = 0; i < count && err == 0; i++)
        err = join_part(&names, texts[i], i, out);
    free(names.slots);
    return err;
}
