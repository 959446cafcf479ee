/* Fuzz target: addresses. An accepted address prints as text that gives the same address. Otherwise
 * only the return of the call is checked.
 */
#include "harness/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "remote/wire/transport.h"

static void
check_address(const char *text)
{
    struct hed_address a, again;
    struct hed_why why = {""};
    char printed[512];
    char cut[7];

    if (hed_address_parse(text, &a, &why)) {
        must(why.text[0] != '\0');
        return;
    }
    must(hed_address_is(text));
    must(a.transport && hed_transport_by_id(a.transport->id) == a.transport);
    must(memchr(a.path, 0, sizeof a.path) && memchr(a.host, 0, sizeof a.host));
    must(a.transport->id != HED_TRANSPORT_TCP || (a.host[0] && !a.path[0]));
    must(a.transport->id != HED_TRANSPORT_VM || !a.path[0]);
    must(a.transport->id == HED_TRANSPORT_TCP || a.transport->id == HED_TRANSPORT_VM || a.path[0]);
    hed_address_text(&a, printed, sizeof printed);
    must(hed_address_parse(printed, &again, &why) == 0);
    must(memcmp(&a, &again, sizeof a) == 0);
    hed_address_text(&a, cut, sizeof cut);
    must(strlen(cut) < sizeof cut && strncmp(cut, printed, strlen(cut)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = malloc(size + 7);

    if (!s)
        return 0;
    if (size)
        memcpy(s, data, size);
    s[size] = '\0';
    check_address(s);
    /* Most inputs do not begin like an address, so prefixes are added. */
    memmove(s + 6, s, size + 1);
    memcpy(s, "tcp://", 6);
    check_address(s);
    free(s);
    return 0;
}
