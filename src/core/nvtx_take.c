/* The library's side of core/nvtx_abi.h: a program's own NVTX ranges and marks go into the trace.
 *
 * `heddle run --trace` names libheddle.so in the environment, unless a profiler's library is named
 * there. What is in any domain is taken alike: ranges of a thread nest, whoever has begun them.
 * Ranges that begin and end in different threads (nvtxRangeStart) are not taken.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/export.h"
#include "core/nvtx_abi.h"
#include "core/session.h"

#define WIDE_MAX 512 /* letters of a text in wide characters */

/* Ranges that this thread has begun and not ended; what NVTX answers. */
static _Thread_local int level;

static int
begin_nvtx_range(const char *text)
{
    (void)hed_session_note(HED_NOTE_RANGE_BEGIN, text ? text : "");
    return level++;
}

static int
end_nvtx_range(void)
{
    if (level == 0)
        return HED_NVTX_NO_RANGE;
    (void)hed_session_note(HED_NOTE_RANGE_END, NULL);
    return --level;
}

static void
put_nvtx_mark(const char *text)
{
    (void)hed_session_note(HED_NOTE_MARK, text ? text : "");
}

/* Wide characters that are not ASCII become "?". */
static const char *
narrow(const wchar_t *text, char *out)
{
    size_t n = 0;

    for (; text && text[n] && n < WIDE_MAX; n++) {
        out[n] = '?';
        if (text[n] > 0 && text[n] < 0x80)
            out[n] = (char)text[n];
    }
    out[n] = '\0';
    return out;
}

/* A registered text is our copy of it. */
static const char *
text_of_event(const struct hed_nvtx_event *e, char *room)
{
    if (!e || e->size < sizeof *e)
        return "";
    switch (e->message_type) {
    case HED_NVTX_ASCII:
    case HED_NVTX_REGISTERED:
        return e->message;
    case HED_NVTX_UNICODE:
        return narrow((const wchar_t *)(const void *)e->message, room);
    default:
        return "";
    }
}

static int
push_wide(const wchar_t *text)
{
    char room[WIDE_MAX + 1];

    return begin_nvtx_range(narrow(text, room));
}

static int
push_event(const struct hed_nvtx_event *e)
{
    char room[WIDE_MAX + 1];

    return begin_nvtx_range(text_of_event(e, room));
}

static int
push_in_domain(void *domain, const struct hed_nvtx_event *e)
{
    return push_event(e);
}

static int
pop_in_domain(void *domain)
{
    return end_nvtx_range();
}

static void
mark_event(const struct hed_nvtx_event *e)
{
    char room[WIDE_MAX + 1];

    put_nvtx_mark(text_of_event(e, room));
}

static void
mark_in_domain(void *domain, const struct hed_nvtx_event *e)
{
    mark_event(e);
}

/* The copies live as long as the process: NVTX has no call that ends them. */
static void *
register_text(void *domain, const char *text)
{
    return strdup(text ? text : "");
}

static void *
register_wide(void *domain, const wchar_t *text)
{
    char room[WIDE_MAX + 1];

    return strdup(narrow(text, room));
}

static void
take_function(hed_nvtx_function **functions, unsigned count, unsigned number, hed_nvtx_function f)
{
    if (number < count && functions[number])
        *functions[number] = f;
}

/* NVTX looks for this name in the library (HED_NVTX_INIT). */
HED_EXPORT int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));

int
InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
    const struct hed_nvtx_callbacks *c = get_table ? get_table(HED_NVTX_TABLE_CALLBACKS) : NULL;
    hed_nvtx_function **f = NULL;
    unsigned n = 0;

    if (!c || c->size < sizeof *c)
        return 0;
    if (c->get_functions(HED_NVTX_CORE, &f, &n) && f) {
        take_function(f, n, HED_NVTX_MARK_EX, (hed_nvtx_function)mark_event);
        take_function(f, n, HED_NVTX_MARK_A, (hed_nvtx_function)put_nvtx_mark);
        take_function(f, n, HED_NVTX_RANGE_PUSH_EX, (hed_nvtx_function)push_event);
        take_function(f, n, HED_NVTX_RANGE_PUSH_A, (hed_nvtx_function)begin_nvtx_range);
        take_function(f, n, HED_NVTX_RANGE_PUSH_W, (hed_nvtx_function)push_wide);
        take_function(f, n, HED_NVTX_RANGE_POP, (hed_nvtx_function)end_nvtx_range);
    }
    f = NULL;
    if (c->get_functions(HED_NVTX_CORE2, &f, &n) && f) {
        take_function(f, n, HED_NVTX_DOMAIN_MARK_EX, (hed_nvtx_function)mark_in_domain);
        take_function(f, n, HED_NVTX_DOMAIN_RANGE_PUSH_EX, (hed_nvtx_function)push_in_domain);
        take_function(f, n, HED_NVTX_DOMAIN_RANGE_POP, (hed_nvtx_function)pop_in_domain);
        take_function(f, n, HED_NVTX_DOMAIN_REGISTER_A, (hed_nvtx_function)register_text);
        take_function(f, n, HED_NVTX_DOMAIN_REGISTER_W, (hed_nvtx_function)register_wide);
    }
    hed_debug(CORE, "the program's NVTX ranges go into the trace");
    return 1;
}
