/* The tables that gen/sass.py makes from spec/sass. Only the decoder reads them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gen/sass_kinds.h"

#define HED_SASS_NONE 255   /* no such bit */
#define HED_SASS_ALWAYS 254 /* a bit that is always set */

/* A field has this value, or, with other, another one. Width 0: always true. */
struct hed_sass_test {
    uint8_t bit, width;
    bool other;
    uint32_t value;
};

struct hed_sass_item {
    uint8_t kind; /* enum hed_sass_kind */
    uint8_t bit, width;
    uint8_t flags; /* enum hed_sass_flag */
    uint8_t negate, absolute;
    uint8_t choice, choice_width;
    uint8_t reuse;
    uint16_t words; /* in hed_sass_words */
    uint16_t word_count;
    struct hed_sass_test test;
};

/* Bits of an address in brackets. */
struct hed_sass_memory {
    uint8_t reg;
    uint8_t wide;  /* the register is a pair */
    uint8_t scale; /* two bits */
    uint8_t ureg;
    uint8_t no_ureg;    /* set if the uniform register does not belong to the address */
    uint8_t with_ureg;  /* set if it does */
    uint8_t descriptor; /* set if it is a descriptor that is written before the address */
    uint8_t offset, offset_width;
    uint8_t style; /* enum hed_sass_style */
};

/* One form of an instruction; rows of one opcode follow each other, those with tests first. */
struct hed_sass_row {
    const char *name;
    uint16_t opcode;
    uint16_t tests, test_count;
    uint16_t items;       /* up to HED_SASS_END */
    bool uniform;         /* the guard is a uniform predicate */
    uint8_t since, until; /* architectures */
};

extern const char *const hed_sass_words[];
extern const struct hed_sass_test hed_sass_tests[];
extern const struct hed_sass_memory hed_sass_memories[];
extern const struct hed_sass_item hed_sass_items[];
extern const struct hed_sass_row hed_sass_rows[];
extern const unsigned hed_sass_row_count;
