/* The words of PTX as enums, made from words.def, and the opcodes, made from opcodes.def.
 *
 * The words of a class are HED_PTX_<CLASS>_<NAME>, counted from 1; 0 means "not given". Flags are
 * the bits of a 64-bit set: HED_PTX_FLAG(FTZ) is a mask.
 */
#pragma once

#include <stdint.h>

enum hed_ptx_class {
    HED_PTX_CLASS_TYPE,
    HED_PTX_CLASS_SPACE,
    HED_PTX_CLASS_ROUND,
    HED_PTX_CLASS_CMP,
    HED_PTX_CLASS_OPER,
    HED_PTX_CLASS_PART,
    HED_PTX_CLASS_MODE,
    HED_PTX_CLASS_CLAMP,
    HED_PTX_CLASS_VEC,
    HED_PTX_CLASS_COP,
    HED_PTX_CLASS_SEM,
    HED_PTX_CLASS_SCOPE,
    HED_PTX_CLASS_GEOM,
    HED_PTX_CLASS_LAYOUT,
    HED_PTX_CLASS_COUNT,
    HED_PTX_CLASS_MATRIX,
    HED_PTX_CLASS_CHANNEL,
    HED_PTX_CLASS_FETCH,
    HED_PTX_CLASS_QUERY,
    HED_PTX_CLASS_HINT,
    HED_PTX_CLASS_FLAG,
    HED_PTX_CLASS_SHAPE, /* m16n8k16 and the like: numbers, not words */
    HED_PTX_CLASSES,
};

enum hed_ptx_type {
    HED_PTX_TYPE_NONE,
#define TYPE(name, text, bits, kind) HED_PTX_TYPE_##name,
#include "kernel/ptx/words.def"
    HED_PTX_TYPES,
};

enum hed_ptx_space {
    HED_PTX_SPACE_NONE, /* generic */
#define SPACE(name, text) HED_PTX_SPACE_##name,
#include "kernel/ptx/words.def"
};

/* The number of coordinates of a texture's or surface's geometry, without the layer; 0 if it is not
 * supported. */
unsigned hed_ptx_geom_coordinates(unsigned geom);

enum hed_ptx_round {
    HED_PTX_ROUND_NONE,
#define ROUND(name, text) HED_PTX_ROUND_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_cmp {
    HED_PTX_CMP_NONE,
#define CMP(name, text) HED_PTX_CMP_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_oper {
    HED_PTX_OPER_NONE,
#define OPER(name, text) HED_PTX_OPER_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_part {
    HED_PTX_PART_NONE,
#define PART(name, text) HED_PTX_PART_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_mode {
    HED_PTX_MODE_NONE,
#define MODE(name, text) HED_PTX_MODE_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_clamp {
    HED_PTX_CLAMP_NONE,
#define CLAMP(name, text) HED_PTX_CLAMP_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_vec {
    HED_PTX_VEC_NONE,
#define VEC(name, text) HED_PTX_VEC_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_cop {
    HED_PTX_COP_NONE,
#define COP(name, text) HED_PTX_COP_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_sem {
    HED_PTX_SEM_NONE,
#define SEM(name, text) HED_PTX_SEM_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_scope {
    HED_PTX_SCOPE_NONE,
#define SCOPE(name, text) HED_PTX_SCOPE_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_geom {
    HED_PTX_GEOM_NONE,
#define GEOM(name, text) HED_PTX_GEOM_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_layout {
    HED_PTX_LAYOUT_NONE,
#define LAYOUT(name, text) HED_PTX_LAYOUT_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_count {
    HED_PTX_COUNT_NONE,
#define COUNT(name, text) HED_PTX_COUNT_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_matrix {
    HED_PTX_MATRIX_NONE,
#define MATRIX(name, text) HED_PTX_MATRIX_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_channel {
    HED_PTX_CHANNEL_NONE,
#define CHANNEL(name, text) HED_PTX_CHANNEL_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_fetch {
    HED_PTX_FETCH_NONE,
#define FETCH(name, text) HED_PTX_FETCH_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_query {
    HED_PTX_QUERY_NONE,
#define QUERY(name, text) HED_PTX_QUERY_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_hint {
    HED_PTX_HINT_NONE,
#define HINT(name, text) HED_PTX_HINT_##name,
#include "kernel/ptx/words.def"
};

enum hed_ptx_flag {
#define FLAG(name, text) HED_PTX_FLAG_##name,
#include "kernel/ptx/words.def"
    HED_PTX_FLAGS,
};

_Static_assert(HED_PTX_FLAGS <= 64, "the flags of a form are one 64-bit set");
_Static_assert(HED_PTX_TYPES <= 64, "sets of types are 64-bit sets");

#define HED_PTX_FLAG(name) (UINT64_C(1) << HED_PTX_FLAG_##name)

enum hed_ptx_family {
#define FAMILY(name, nature) HED_PTX_FAMILY_##name,
#include "kernel/ptx/opcodes.def"
    HED_PTX_FAMILIES,
};

/* What the lanes of a warp do in an instruction. */
enum hed_ptx_nature {
    HED_PTX_COMPUTES, /* each computes a value from its operands, and has no other effect */
    HED_PTX_ACTS,     /* each has an effect that others can see, or sees what others did */
    HED_PTX_MEETS,    /* lanes wait for each other or exchange values */
    HED_PTX_LEAVES,   /* the lane goes on somewhere else */
};

enum hed_ptx_op {
    HED_PTX_OP_NONE, /* not an instruction we know */
#define OP(name, ...) HED_PTX_OP_##name,
#define ALIAS(name, ...)
#include "kernel/ptx/opcodes.def"
    HED_PTX_OPS,
};

enum hed_ptx_sreg {
#define SREG(name, text, type, dims) HED_PTX_SREG_##name,
#include "kernel/ptx/sregs.def"
    HED_PTX_SREGS,
};

/* Kinds of types, as in words.def. */
enum hed_ptx_kind {
    HED_PTX_KIND_NONE,
    HED_PTX_KIND_U,
    HED_PTX_KIND_S,
    HED_PTX_KIND_B,
    HED_PTX_KIND_F,
    HED_PTX_KIND_X,
    HED_PTX_KIND_P,
    HED_PTX_KIND_O,
};

struct hed_ptx_type_info {
    const char *text; /* "u32" */
    uint8_t bits;
    uint8_t kind; /* enum hed_ptx_kind */
};

struct hed_ptx_sreg_info {
    const char *text; /* "%tid" */
    uint8_t type;     /* enum hed_ptx_type, of a component where there are any */
    uint8_t dims;     /* does it have components? */
};

extern const struct hed_ptx_type_info hed_ptx_types[HED_PTX_TYPES];
extern const struct hed_ptx_sreg_info hed_ptx_sregs[HED_PTX_SREGS];

/* The text of an opcode ("barrier.sync") or of a state space ("global"). Never NULL. */
const char *hed_ptx_op_text(enum hed_ptx_op op);
const char *hed_ptx_space_text(enum hed_ptx_space space);

/* The nature of the opcode's family. */
enum hed_ptx_nature hed_ptx_op_nature(enum hed_ptx_op op);
