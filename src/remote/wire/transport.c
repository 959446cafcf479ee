/* The table of transports, and what is read from it: addresses, and the link of a socket. */
#include "remote/wire/transport.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "remote/wire/channel/ops.h"
#include "remote/wire/link/link.h"

#define EVERYWHERE (HED_CAN_PARK | HED_CAN_BASE | HED_CAN_REFUSALS | HED_CAN_SHARE)
#define IN_MEMORY (EVERYWHERE | HED_CAN_SLOTS | HED_CAN_SHARED_HEAP | HED_CAN_BEAT)

/* A transport is one line here. */
static const struct hed_transport transports[] = {
    {HED_TRANSPORT_SHM, "shm", "shm:", "shm:PATH", IN_MEMORY | HED_CAN_CLIENT_HEAP | HED_CAN_ORDERS,
     &hed_link_unix, &hed_channel_shm},
    {HED_TRANSPORT_UNIX, "unix", "unix:", "unix:PATH", EVERYWHERE | HED_CAN_ORDERS, &hed_link_unix,
     &hed_channel_stream},
    {HED_TRANSPORT_TCP, "tcp", "tcp://", "tcp://HOST:PORT", EVERYWHERE | HED_CAN_ORDERS,
     &hed_link_tcp, &hed_channel_stream},
    {HED_TRANSPORT_VM, "vm", "vm:", "vm:NAME", IN_MEMORY, &hed_link_vm, &hed_channel_window},
};

#define COUNT (sizeof transports / sizeof transports[0])

const struct hed_transport *
hed_transport_by_id(uint32_t id)
{
    for (size_t i = 0; i < COUNT; i++)
        if ((uint32_t)transports[i].id == id)
            return &transports[i];
    return NULL;
}

const struct hed_link *
hed_link_of(int fd)
{
    int family = 0;
    socklen_t size = sizeof family;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0)
        return NULL;
    for (size_t i = 0; i < COUNT; i++) {
        const struct hed_link *link = transports[i].link;

        if (family == link->families[0] || (link->families[1] && family == link->families[1]))
            return link;
    }
    return NULL;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* "tcp:" is enough to be taken for an address, so that "tcp:host" is explained and not looked for
 * among the backends. */
bool
hed_address_is(const char *text)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strncmp(text, transports[i].scheme, strcspn(transports[i].scheme, ":") + 1) == 0)
            return true;
    return false;
}

static int
refuse_address(const char *text, struct hed_why *why)
{
    char forms[128] = "";
    size_t at = 0;

    for (size_t i = 0; i < COUNT && at < sizeof forms; i++)
        at += (size_t)snprintf(forms + at, sizeof forms - at, "%s%s",
                               i == 0           ? ""
                               : i == COUNT - 1 ? " or "
                                                : ", ",
                               transports[i].form);
    hed_why_set(why, "'%.200s' is not the address of a server: use %s", text, forms);
    return HED_EINVAL;
}

int
hed_address_parse(const char *text, struct hed_address *out, struct hed_why *why)
{
    for (size_t i = 0; i < COUNT; i++) {
        const struct hed_transport *t = &transports[i];
        const size_t n = strlen(t->scheme);
        struct hed_address a = {.transport = t};

        if (strncmp(text, t->scheme, n) != 0)
            continue;

        const int err = t->link->parse(text, text + n, &a, why);

        if (!err)
            *out = a;
        return err;
    }
    return refuse_address(text, why);
}

void
hed_address_text(const struct hed_address *a, char *out, size_t size)
{
    char rest[HED_ADDRESS_TEXT] = "";

    if (a->transport)
        a->transport->link->print(a, rest, sizeof rest);
    (void)snprintf(out, size, "%s%s", a->transport ? a->transport->scheme : "?", rest);
}
