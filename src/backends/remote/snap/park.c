/* Messages about parking. See park.h. */
#include "backends/remote/snap/park.h"

#include "base/err.h"

int
hed_remote_say_park(struct hed_remote *r, uint8_t *key, struct hed_why *why)
{
    (void)r, (void)key;
    hed_why_set(why, "the server cannot keep a worker for a client that is away");
    return HED_ENOTSUP;
}

int
hed_remote_say_return(struct hed_remote *r, const uint8_t *key, struct hed_channel **out,
                      struct hed_why *why)
{
    (void)r, (void)key, (void)out;
    hed_why_set(why, "the server cannot keep a worker for a client that is away");
    return HED_ENOTSUP;
}
