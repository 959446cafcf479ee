/* The schema of one API as a trace carries it (docs/trace-format.md), in memory.
 *
 * It describes the encoding of a call; print.c decodes it. A schema comes from a file and is not
 * trusted: what cannot be understood becomes HED_CODE_BAD, so that one strange call does not affect
 * the others.
 *
 * Invariants: 1. Everything lies in the arena given to the parser and is constant after it. 2.
 * Types can refer to each other in circles, so code that follows them must limit depth and steps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_arena;
struct hed_enum;
struct hed_why;

#define HED_SCHEMA_NAME_MAX 127 /* letters of any name */
#define HED_SCHEMA_NEST_MAX 8   /* prefixes ([N], *, @) before a code */

enum hed_schema_code {
    HED_CODE_BAD, /* not understood: nothing after such a value can be read */
    HED_CODE_U8,
    HED_CODE_U16,
    HED_CODE_U32,
    HED_CODE_U64,
    HED_CODE_I8,
    HED_CODE_I16,
    HED_CODE_I32,
    HED_CODE_I64,
    HED_CODE_F32,
    HED_CODE_F64,
    HED_CODE_X32,
    HED_CODE_X64,
    HED_CODE_POINTER,
    HED_CODE_HANDLE, /* name: the kind */
    HED_CODE_ENUM,   /* values: its names, NULL if we know none */
    HED_CODE_RECORD,
    HED_CODE_ARRAY, /* count of inner */
    HED_CODE_REF,   /* pointer to one inner */
    HED_CODE_MANY,  /* pointer to several inner */
    HED_CODE_BULK,
    HED_CODE_TEXT,
};

struct hed_schema_record;

struct hed_schema_type {
    enum hed_schema_code code;
    uint32_t count;                         /* ARRAY */
    const struct hed_schema_type *inner;    /* ARRAY, REF, MANY */
    const struct hed_schema_record *record; /* RECORD */
    const char *name;                       /* HANDLE, ENUM, RECORD */
    const struct hed_enum *values;          /* ENUM */
};

struct hed_schema_field {
    const char *name; /* "" for an anonymous member */
    char dir;         /* arguments: 'i', 'o', 'b'; else 0 */
    struct hed_schema_type type;
};

struct hed_schema_record {
    const char *name;
    struct hed_schema_field *fields;
    uint32_t field_count;
    uint32_t size; /* bytes of a union */
    uint32_t at;   /* where its line begins in the text; of two of a name the first counts */
    char keyword;  /* 's' struct, 'u' union */
};

/* Outputs that a failure sets. */
struct hed_schema_fails {
    const struct hed_schema_fails *next;
    bool any; /* failure; else only the one with this result */
    uint32_t result;
    uint64_t args; /* bit i: argument i */
};

struct hed_schema_call {
    const char *name;
    const struct hed_schema_field *args;
    uint32_t arg_count;
    const char *suffix; /* "_ptsz", "_ptds": the name of its last argument; NULL if it has none */
    const struct hed_schema_fails *fails; /* NULL: no failure sets anything */
};

struct hed_schema {
    const char *api;               /* "cuda" */
    const struct hed_enum *result; /* NULL if we do not know it */
    const struct hed_enum *enums;
    size_t enum_count;
    struct hed_schema_record *records; /* sorted by name */
    size_t record_count;
    struct hed_schema_call **calls; /* by number; NULL where there is none */
    size_t call_count;              /* one over the highest number */
};

/* Parses the payload of a SCHEMA block. HED_EFORMAT: it does not begin with an api line;
 * HED_ELIMIT: it needs more than the arena gives. Lines that are not understood are passed over.
 * The text need not outlive the call.
 */
int hed_schema_parse(const char *text, size_t size, struct hed_arena *arena,
                     const struct hed_schema **out, struct hed_why *why);

/* Which of the outputs a call with this result sets: bit i for argument i. */
uint64_t hed_schema_set(const struct hed_schema_call *c, int32_t result);

/* The call of a number, or NULL. s may be NULL. */
const struct hed_schema_call *hed_schema_call(const struct hed_schema *s, unsigned number);
