/* A trace as one HTML file that needs no network: a timeline, and the tables of the summary.
 *
 *     page/page.html, page.css, *.js    the page, which the build puts into the command (embed.py)
 *     facts                             JSON: the program, tracks, names, the summary
 *     events                            base64 of five columns, in the order of the rows and of
 *                                       time within each: start and duration (arrays of f64, ns;
 *                                       starts since the trace began), name, note and link (u32)
 *
 * Events of a row do not overlap, so that the page finds and sums up what it shows by binary
 * search.
 * A link is a number that a call and what it has caused have in common; 0: none.
 *
 * Every text in the file is one of the traced program. In JSON, "<" is always \u003c, so that no
 * text can end the script that it is in; the page makes texts of them and never HTML.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct hed_page;
struct hed_trace;
struct hed_trace_record;
struct hed_why;

#define HED_PAGE_EVENTS_MAX (8u << 20) /* more than that, a browser cannot show */
#define HED_PAGE_NAMES_MAX 65536       /* different names; the others are "(other)" */
#define HED_PAGE_NOTES_MAX (1u << 20)  /* different notes; the others have none */
#define HED_PAGE_TEXT_MAX (64u << 20)  /* bytes of all names, and of all notes */
#define HED_PAGE_LANES_MAX 64          /* rows of a track; what would need more is left out */

/* NULL if there is no memory. The trace stays the caller's. */
struct hed_page *hed_page_create(const struct hed_trace *t);

/* Takes a record. Records must come in the order of time. */
bool hed_page_put(struct hed_page *p, const struct hed_trace_record *r, struct hed_why *why);

/* Writes the file. `path` is the trace's, for people. */
bool hed_page_write(struct hed_page *p, const char *path, FILE *file, struct hed_why *why);

/* p may be NULL. */
void hed_page_free(struct hed_page *p);
