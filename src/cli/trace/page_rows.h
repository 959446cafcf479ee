/* What a page holds before it is written. For page.c and page_write.c. */
#pragma once

#include "base/buf.h"
#include "cli/trace/link.h"
#include "cli/trace/util.h"

/* What an event is, which gives it its colour; page/events.js has the same list. */
enum hed_page_kind {
    HED_PAGE_KERNEL,
    HED_PAGE_COPY,
    HED_PAGE_FILL,
    HED_PAGE_OTHER, /* of a GPU */
    HED_PAGE_CALL,
    HED_PAGE_LAUNCH, /* and other calls that put work on a GPU */
    HED_PAGE_WAIT,   /* calls that wait for one */
    HED_PAGE_RANGE,
    HED_PAGE_MARK,
};

struct hed_page_event {
    uint64_t start; /* ns since the trace began */
    uint64_t end;
    uint32_t row;
    uint32_t name;
    uint32_t note;
    uint32_t link;
};

/* Events that do not overlap. */
struct hed_page_row {
    uint32_t track;
    uint64_t until; /* ns: when its last event ends */
    size_t count;   /* events */
    uint32_t next;  /* of the same track + 1; 0: none */
};

/* A thread, or a stream of a GPU. */
struct hed_page_track {
    bool gpu;
    uint32_t device;
    uint64_t thread; /* or the stream */
    uint32_t context;
    bool only_context; /* the first of its GPU */
    uint32_t rows;     /* the first of them + 1 */
    uint32_t *open;    /* owned: events of ranges that have begun */
    size_t open_count;
};

struct hed_page_texts {
    struct hed_cli_map map; /* hash -> number + 1 */
    struct hed_buf json;    /* the inside of an array */
    uint32_t count;
};

struct hed_page {
    const struct hed_trace *trace;
    struct hed_cli_links links;
    struct hed_page_event *events; /* owned */
    size_t count;
    size_t left_out;           /* events that would have needed too many rows */
    struct hed_page_row *rows; /* owned */
    size_t row_count;
    struct hed_page_track *tracks; /* owned */
    size_t track_count;
    struct hed_cli_map threads; /* thread -> track + 1 */
    struct hed_cli_contexts contexts;
    struct hed_cli_map streams; /* context's number and stream -> track + 1 */
    struct hed_cli_map calls;   /* API, number and variant of a call -> name + 1 */
    struct hed_page_texts names;
    struct hed_page_texts notes;
    struct hed_buf kinds; /* a number for each name, with commas */
    struct hed_buf text;  /* scratch */
};
