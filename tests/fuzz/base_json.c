/* Fuzz target: reading JSON. Whatever the text, every loop ends and nothing outside is read. */
#include "harness/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static void
read_members(struct hed_json *j)
{
    char key[8];

    if (!hed_json_enter(j, '{'))
        return;
    while (hed_json_key(j, key, sizeof key)) {
        must(strlen(key) < sizeof key);
        switch (key[0]) {
        case 'n':
            (void)hed_json_number(j);
            break;
        case 't':
            hed_json_text(j, key, sizeof key);
            break;
        case 'o':
            read_members(j);
            break;
        default:
            hed_json_skip(j);
            break;
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of its own, so that a sanitizer sees a byte too many. */
    char *s = malloc(size ? size : 1);
    struct hed_json j;

    if (!s)
        return 0;
    if (size)
        memcpy(s, data, size);
    j = hed_json_over(s, size);
    read_members(&j);
    must(j.at >= s && j.at <= s + size);
    j = hed_json_over(s, size);
    hed_json_skip(&j);
    must(j.at >= s && j.at <= s + size);
    free(s);
    return 0;
}
