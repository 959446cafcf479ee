/* Checking hellos, and refusing clients. See hello.h. */
#include "remote/server/hello.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "gen/cuda_hash.h"
#include "gen/nvml_hash.h"
#include "remote/wire/transport.h"
#include "remote/wire/wire.h"

static bool
ends_in_room(const char *s, size_t room)
{
    return memchr(s, 0, room) != NULL;
}

int
hed_hello_check(const struct hed_hello *h, const struct hed_link *link, struct hed_why *why)
{
    const struct hed_transport *t = hed_transport_by_id(h->transport);

    if (h->head.kind != HED_MSG_HELLO || h->head.size != sizeof *h ||
        !ends_in_room(h->version, sizeof h->version) || !ends_in_room(h->name, sizeof h->name) ||
        !ends_in_room(h->visible, sizeof h->visible) || !ends_in_room(h->token, sizeof h->token)) {
        hed_why_set(why, "the client's first message is not a hello");
        return HED_EFORMAT;
    }
    if (h->major != HED_WIRE_MAJOR) {
        hed_why_set(
            why,
            "the client speaks version %u of the protocol, but this server (heddle %s) speaks "
            "version %u; use the same heddle on both sides",
            h->major, HED_VERSION, HED_WIRE_MAJOR);
        return HED_EVERSION;
    }
    if (h->cuda_ids != HED_CUDA_HASH || h->nvml_ids != HED_NVML_HASH) {
        hed_why_set(why,
                    "the client (heddle %s) and this server (heddle %s) know different calls; "
                    "use the same version on both sides",
                    h->version, HED_VERSION);
        return HED_EVERSION;
    }
    if (!t || t->link != link) {
        hed_why_set(why, "the client names transport %u, which this connection cannot carry",
                    h->transport);
        return HED_EFORMAT;
    }
    return 0;
}

void
hed_welcome_refuse(struct hed_welcome *w, int result, const char *text)
{
    memset(w, 0, sizeof *w);
    w->head.head.size = sizeof *w;
    w->head.head.kind = HED_MSG_ANSWER;
    w->head.result = result;
    w->major = HED_WIRE_MAJOR;
    w->minor = HED_WIRE_MINOR;
    (void)hed_str_copy(w->text, sizeof w->text, text);
}
