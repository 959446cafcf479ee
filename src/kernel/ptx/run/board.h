/* What a process shows of the kernels that it runs, for `heddle cpu explain PID`.
 *
 *   process ── memfd "heddle-cpu": head, then records ──> /proc/PID/fd/N ── heddle cpu explain
 *
 * The memory belongs to the process and ends with it: no file has to be removed, and only its user
 * can open it. The process writes through a mapping, so nothing bad happens if the program closes
 * descriptors that it does not know. Records are added at the end and never move; the numbers in
 * them change while kernels run.
 *
 * Readers trust nothing: hed_board_read() checks every size.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HED_BOARD_NAME "heddle-cpu"
#define HED_BOARD_MAX ((size_t)64 << 20) /* bytes; what does not fit is left out */

struct hed_board_head {
    char magic[8]; /* HED_BOARD_MAGIC */
    uint32_t pid;
    uint32_t zero;
    _Atomic uint64_t used; /* bytes of records */
    _Atomic uint64_t left_out;
};
#define HED_BOARD_MAGIC "HEDBRD2"

enum hed_board_kind { HED_BOARD_MODULE = 1, HED_BOARD_KERNEL = 2 };

/* Where the launches of a kernel run. */
enum hed_board_tier {
    HED_BOARD_BASELINE,
    HED_BOARD_QUEUED,   /* baseline; it is hot and will be compiled */
    HED_BOARD_COMPILED, /* compiled code */
    HED_BOARD_STAYS,    /* baseline; it cannot be compiled for warps */
};

struct hed_board_record {
    uint32_t kind; /* enum hed_board_kind */
    uint32_t size; /* bytes, with this; a multiple of 8 */
};

struct hed_board_module {
    struct hed_board_record record;
    uint32_t id;        /* from 1 */
    uint32_t has_text;  /* 0: it did not fit, or nobody needed it */
    uint32_t is_lifted; /* the text was made from the machine code of one kernel */
    uint32_t zero;
    uint64_t text_size;
    char text[]; /* PTX, if there is any */
};

struct hed_board_kernel {
    struct hed_board_record record;
    uint32_t module;              /* its id */
    uint32_t rows;                /* enum hed_rows: the layout of threads in warps */
    _Atomic uint32_t tier;        /* enum hed_board_tier */
    _Atomic uint32_t shape;       /* enum hed_ptx_made, if compiled */
    _Atomic uint32_t flags;       /* enum hed_ptx_info_flag, if compiled */
    _Atomic uint32_t frame;       /* bytes kept at a barrier, if compiled */
    _Atomic uint32_t compile_us;  /* when it was compiled, here or before */
    _Atomic uint32_t is_cached;   /* its code came from the cache */
    _Atomic uint64_t launches;    /* all */
    _Atomic uint64_t baseline_ns; /* launches in the baseline tier */
    char name[];                  /* terminated */
};

/* ---- the process ----------------------------------------------------------------------------- */

struct hed_board;

/* NULL if the system does not allow it: the process shows nothing then. */
struct hed_board *hed_board_create(void);
void hed_board_free(struct hed_board *b);

/* Adds a module; returns its id, or 0. b may be NULL in all of them. */
uint32_t hed_board_add_module(struct hed_board *b, const void *text, size_t size);
/* The same for a kernel from machine code; text is NULL if it was not lifted. */
uint32_t hed_board_add_lifted(struct hed_board *b, const void *text, size_t size);
/* Adds a kernel, whose numbers the caller may change; NULL if there is no room. */
struct hed_board_kernel *hed_board_add_kernel(struct hed_board *b, uint32_t module, uint32_t rows,
                                              const char *name);

/* ---- the reader ------------------------------------------------------------------------------ */

/* A copy of a board, checked: records can be visited and their texts read. */
struct hed_board_copy {
    unsigned char *bytes; /* owned */
    size_t size;
};

/* From an open memfd of that process. HED_EFORMAT if it is not a board of it, HED_ENOMEM, or an
 * error of reading. */
int hed_board_read(int fd, uint32_t pid, struct hed_board_copy *out);
void hed_board_copy_free(struct hed_board_copy *c);
/* The record at *at, which then is that of the next; NULL at the end. *at is 0 at first. */
const struct hed_board_record *hed_board_next(const struct hed_board_copy *c, size_t *at);
uint64_t hed_board_left_out(const struct hed_board_copy *c);
