/* Snapshots of a program that hardly stops. See shadow.h. */
#include "backends/remote/snap/shadow.h"

#include "base/err.h"

int
hed_remote_shadow(struct hed_remote_attendant *a, struct hed_remote_request *q)
{
    (void)a;
    hed_why_set(&q->why, "copies in device memory are not made yet");
    return HED_ENOTSUP;
}

int
hed_remote_continue(struct hed_remote_attendant *a, struct hed_remote_request *q)
{
    (void)a;
    (void)q;
    return HED_ENOTSUP;
}
