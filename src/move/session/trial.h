/* For tests: moves the program to a new worker now and then (HED_TEST_MOVES). Before a call. */
#pragma once

struct hed_remote;

#ifdef HED_DEBUG
void hed_remote_trial(struct hed_remote *r);
#else
static inline void
hed_remote_trial(struct hed_remote *r)
{
    (void)r;
}
#endif
