/* heddle top: what its parts share.
 *
 *   top.c     the words, and printing: once, or as JSON
 *   order.c   which rows, in which order
 *   page.c    a view as lines of text that fit a terminal; knows no terminal
 *   cell.c    numbers that fit a column
 *   screen.c  the terminal, by ncurses; screen_none.c stands in for it
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "see/live.h"

#define HED_TOP_FILTER 64
#define HED_TOP_WIDTH 512 /* columns; a wider terminal stays empty there */

/* ---- order.c --------------------------------------------------------------------------------- */

enum hed_top_sort {
    HED_TOP_BY_BUSY,
    HED_TOP_BY_WAIT,
    HED_TOP_BY_MEMORY,
    HED_TOP_BY_LAUNCHES,
    HED_TOP_BY_PID,
    HED_TOP_BY_USER,
    HED_TOP_BY_PROGRAM,
    HED_TOP_BY_STATE,
    HED_TOP_BY_DEVICE,
    HED_TOP_SORTS
};

/* What the user wants to see. */
struct hed_top_choice {
    enum hed_top_sort sort;
    bool reverse;
    bool tree;    /* by user and group */
    bool command; /* command lines instead of names */
    char filter[HED_TOP_FILTER];
};

/* A line of the table: a row of the view, or the sum of those below it. */
struct hed_top_item {
    bool sum;
    size_t row;   /* in the view; of a sum, its first */
    size_t count; /* of a sum */
    double busy;  /* < 0: not known; so are the next two */
    double wait, rate;
    uint64_t memory;
};

struct hed_top_list {
    struct hed_top_item *items; /* owned */
    size_t count, room;
};

const char *hed_top_sort_name(enum hed_top_sort sort);
bool hed_top_sort_find(const char *name, enum hed_top_sort *out);

/* HED_ENOMEM. */
int hed_top_arrange(const struct hed_live_view *v, const struct hed_top_choice *c,
                    struct hed_top_list *out);
void hed_top_list_free(struct hed_top_list *l);

/* ---- cell.c ---------------------------------------------------------------------------------- */

#define HED_TOP_CELL 32 /* bytes */

void hed_top_size(uint64_t bytes, char out[HED_TOP_CELL]);  /* "18.2G", at most 6 letters */
void hed_top_percent(double part, char out[HED_TOP_CELL]);  /* "93.0", or "-" */
void hed_top_count(double n, char out[HED_TOP_CELL]);       /* "8210", "12.5M", or "-" */
void hed_top_duration(uint64_t ns, char out[HED_TOP_CELL]); /* "1.90ms", or "-" */
void hed_top_age(double seconds, char out[HED_TOP_CELL]);   /* "3 d" */

/* Cuts text to a width: the middle goes, because clients of one program differ at the end. */
void hed_top_cut(char *text, size_t width);

/* ---- page.c ---------------------------------------------------------------------------------- */

enum hed_top_kind {
    HED_TOP_TITLE,
    HED_TOP_DEVICE,
    HED_TOP_HEADING,
    HED_TOP_ROW,
    HED_TOP_SUM,
    HED_TOP_NOTE
};

struct hed_top_line {
    enum hed_top_kind kind;
    bool chosen, quiet; /* the cursor is there; an idle program */
    char text[HED_TOP_WIDTH + 1];
};

struct hed_top_page {
    struct hed_top_line *lines; /* owned */
    size_t count, room;
    int err; /* HED_ENOMEM */
};

/* What a page is made of. */
struct hed_top_state {
    const struct hed_live_view *view;
    const struct hed_top_list *list;
    const struct hed_top_choice *choice;
    size_t columns, lines; /* lines 0: as many as there are, for a printer */
    size_t cursor;         /* in the list */
    size_t first;          /* the list's first item on the screen; hed_top_draw() moves it */
    const char *note;      /* the bottom line; NULL: the keys */
};

void hed_top_draw(struct hed_top_state *s, struct hed_top_page *out);
void hed_top_page_free(struct hed_top_page *p);

/* ---- screen.c -------------------------------------------------------------------------------- */

/* Shows views until the user ends it; returns the exit code. Call it before there are threads. */
int hed_top_screen(const struct hed_live_how *how, struct hed_top_choice *c);
bool hed_top_has_screen(void);
