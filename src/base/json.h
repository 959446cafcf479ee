/* Reading JSON, piece by piece and in order, from text that may be anything.
 *
 *     hed_json_enter(&j, '{');
 *     while (hed_json_key(&j, key, sizeof key))
 *         if (strcmp(key, "pid") == 0)
 *             pid = hed_json_number(&j);
 *         else
 *             hed_json_skip(&j);
 *
 * One sticky error: after the first mistake in the text every function answers 0, false or "", and
 * no loop as above goes on. Check `bad` once, at the end. It allocates nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HED_JSON_DEPTH 32 /* objects and arrays inside each other */

struct hed_json {
    const char *at, *end;
    unsigned depth;
    bool first; /* no member of the innermost object or array has been read */
    bool bad;
};

struct hed_json hed_json_over(const char *text, size_t size);

/* Steps into an object ('{') or an array ('['). If the value is something else, that is a
 * mistake. */
bool hed_json_enter(struct hed_json *j, char what);

/* Is there another member? Steps out if not. */
bool hed_json_next(struct hed_json *j);                        /* of an array: read it then */
bool hed_json_key(struct hed_json *j, char *out, size_t size); /* of an object: its key */

/* Values. One of another kind is passed over and reads as 0, false or "": null, say. A number is
 * read as a whole one if it is not negative and fits; text is cut to fit, in bytes. */
uint64_t hed_json_number(struct hed_json *j);
double hed_json_real(struct hed_json *j);
bool hed_json_bool(struct hed_json *j);
bool hed_json_null(struct hed_json *j); /* passes over null; false: it is something else */
void hed_json_text(struct hed_json *j, char *out, size_t size);
void hed_json_skip(struct hed_json *j);
