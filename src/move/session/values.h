/* Objects whose values the device chooses, and which must be the same at another worker. */
#pragma once

struct hed_remote;
struct hed_why;

/* Makes all texture and surface objects and conditional handles of the program. Arrays and memory
 * are there already. HED_ENOTSUP with the reason if a value is not as it was. */
int hed_remote_values_again(struct hed_remote *r, struct hed_why *why);
