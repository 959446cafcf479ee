/* Fuzz target: everything in base that reads text, and what must hold for any text. */
#include "harness/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

static void
check_escape(const char *s, size_t n)
{
    struct hed_buf once;
    struct hed_buf again;

    hed_buf_init(&once, 6 * n + 1);
    hed_buf_init(&again, 12 * n + 1);
    hed_str_escape(&once, s, n);
    must(once.err == 0);
    for (size_t i = 0; i < once.size; i++)
        must(once.data[i] >= 0x20);

    /* The result is valid UTF-8, so a second round only doubles backslashes and quotes. */
    size_t escapes = 0;

    for (size_t i = 0; i < once.size; i++)
        escapes += once.data[i] == '\\' || once.data[i] == '"';
    hed_str_escape(&again, (const char *)once.data, once.size);
    must(again.err == 0 && again.size == once.size + escapes);
    hed_buf_fini(&once);
    hed_buf_fini(&again);
}

static void
check_parsers(char *s)
{
    struct hed_why why;
    uint64_t number = 0;
    uint64_t bytes = 0;
    bool flag;

    hed_parse_bool(s, &flag);
    /* A decimal number is also a size, with the same value. */
    if (hed_parse_size(s, &bytes) == 0 && hed_parse_u64(s, &number) == 0)
        must(bytes == number);
    hed_log_setup(s, &why);
    hed_log_setup(NULL, NULL);
    must(strlen(hed_str_trim(s)) <= strlen(s));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = malloc(size + 1);

    if (!s)
        return 0;
    if (size)
        memcpy(s, data, size);
    s[size] = '\0';
    check_escape(s, size);
    check_parsers(s);
    free(s);
    return 0;
}
