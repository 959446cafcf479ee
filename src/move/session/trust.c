/* Whether a program obeys its server. See orders.h.
 *
 * Rules, for every setting but off:
 * 1. Sockets of this machine are for servers of this machine to name: a server elsewhere cannot
 *    know what is at a path here.
 * 2. Who was reached over TLS cannot send the program to where there is no TLS.
 * 3. The new server is checked as any server of this program is: authority, name, token.
 * With `trusted`, in addition:
 * 4. The present server is secured by TLS, or a process of root or of this user on this machine.
 *    Otherwise anyone on the way, or another user, could give the order.
 * 5. So is the new one.
 */
#include <string.h>

#include "base/err.h"
#include "move/session/orders.h"
#include "remote/remote.h"

enum hed_remote_obeys
hed_remote_obeys(const char *setting)
{
    return strcmp(setting, "on") == 0        ? HED_OBEYS_ALL
           : strcmp(setting, "trusted") == 0 ? HED_OBEYS_TRUSTED
                                             : HED_OBEYS_NONE;
}

static bool
is_trusted_user(const struct hed_remote_trust *t, uid_t user)
{
    return user == 0 || user == t->own;
}

/* The reason why the present server is not obeyed, or NULL. */
static const char *
distrust_server(const struct hed_remote_trust *t)
{
    if (t->obeys == HED_OBEYS_NONE)
        return "the program takes no orders (orders=off)";
    if (t->obeys == HED_OBEYS_ALL || t->secure)
        return NULL;
    if (!t->local)
        return "the program takes orders over TLS only (orders=trusted)";
    return is_trusted_user(t, t->server)
               ? NULL
               : "the program takes orders from servers of root and of its own user only "
                 "(orders=trusted)";
}

int
hed_remote_may_go(const struct hed_remote_trust *t, const struct hed_address *to,
                  struct hed_why *why)
{
    const bool to_local = to->transport->link->local;
    const char *reason = distrust_server(t);

    if (!reason && to->transport->id == HED_TRANSPORT_VM)
        reason = "a program cannot be sent into or out of a guest";
    if (!reason && to_local && !t->local)
        reason = "a server of another machine cannot send the program to a socket of this one; "
                 "give an address that begins with tcp://";
    if (!reason && !to_local && t->insecure && (t->secure || t->obeys != HED_OBEYS_ALL))
        reason = "without TLS (insecure=yes) the program does not go where a server sends it "
                 "(orders=trusted)";
    if (!reason)
        return 0;
    hed_why_set(why, "%s", reason);
    return HED_EACCESS;
}

int
hed_remote_may_trust(const struct hed_remote_trust *t, uid_t user, struct hed_why *why)
{
    if (t->obeys == HED_OBEYS_ALL || is_trusted_user(t, user))
        return 0;
    hed_why_set(why, "the new server belongs neither to root nor to the program's user "
                     "(orders=trusted)");
    return HED_EACCESS;
}
