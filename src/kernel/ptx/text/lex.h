/* Tokens of PTX text: a cursor over a range of memory. It allocates nothing and never fails: what
 * is not a token is HED_PTX_TOKEN_BAD, and at the end, or at a 0 byte, every token is
 * HED_PTX_TOKEN_END.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum hed_ptx_token_kind {
    HED_PTX_TOKEN_END,
    HED_PTX_TOKEN_BAD,    /* an invalid character, literal or comment */
    HED_PTX_TOKEN_IDENT,  /* add, %r1, $L__BB0_1, _ */
    HED_PTX_TOKEN_DOT,    /* .global, .L2::128B, .2d: text without the dot */
    HED_PTX_TOKEN_INT,    /* bits */
    HED_PTX_TOKEN_F32,    /* 0f3F800000: bits of a float */
    HED_PTX_TOKEN_F64,    /* 0d..., 1.5, 1e3: bits of a double */
    HED_PTX_TOKEN_STRING, /* text between the quotes */
    HED_PTX_TOKEN_PUNCT,  /* punct: a character, or one of enum hed_ptx_punct */
};

enum hed_ptx_punct {
    HED_PTX_PUNCT_SHL = 256,
    HED_PTX_PUNCT_SHR,
    HED_PTX_PUNCT_LE,
    HED_PTX_PUNCT_GE,
    HED_PTX_PUNCT_EQ,
    HED_PTX_PUNCT_NE,
    HED_PTX_PUNCT_AND,
    HED_PTX_PUNCT_OR,
};

struct hed_ptx_token {
    const char *text;
    uint32_t len;
    uint32_t line, column; /* from 1 */
    uint16_t kind;         /* enum hed_ptx_token_kind */
    uint16_t punct;
    uint64_t bits;
};

struct hed_ptx_lexer {
    const char *at, *end;
    const char *line_start;
    uint32_t line;
};

void hed_ptx_lex_init(struct hed_ptx_lexer *l, const char *text, size_t size);

/* The next token; blanks and comments before it are skipped. */
void hed_ptx_lex(struct hed_ptx_lexer *l, struct hed_ptx_token *t);

/* Right after an identifier: adds the rest of an instruction's name, ".global.nc.v4.f32", to the
 * token, up to the first character that cannot be part of it.
 */
void hed_ptx_lex_opcode(struct hed_ptx_lexer *l, struct hed_ptx_token *t);
