/* The first words of a session, on the server's side: does the client's hello fit, and how a client
 * is refused. The gate, the listener and the worker have their turn with it.
 */
#pragma once

struct hed_hello;
struct hed_link;
struct hed_welcome;
struct hed_why;

/* Is it a hello, of this version, with this server's calls, over the right link? The token is not
 * looked at. */
int hed_hello_check(const struct hed_hello *h, const struct hed_link *link, struct hed_why *why);

/* A welcome that tells the client why it is not welcome. `result` is a CUresult. */
void hed_welcome_refuse(struct hed_welcome *w, int result, const char *text);
