/* The video instructions, for one thread at a time; compiled kernels call this. */
#pragma once

#include <stdint.h>

enum hed_video_op {
    HED_VIDEO_ADD,
    HED_VIDEO_SUB,
    HED_VIDEO_ABSDIFF,
    HED_VIDEO_MIN,
    HED_VIDEO_MAX,
    HED_VIDEO_SHL,
    HED_VIDEO_SHR,
    HED_VIDEO_MAD,
    HED_VIDEO_SET,
    HED_VIDEO_AVRG,
};

/* An instruction in one word, a constant of the compiled code. Selectors are those of struct
 * hed_ptx_operand; 0 if there is none. */
struct hed_video {
    uint32_t op : 4;    /* enum hed_video_op */
    uint32_t parts : 3; /* of a word: 1, 2, 4 */
    uint32_t d_signed : 1;
    uint32_t a_signed : 1;
    uint32_t b_signed : 1;
    uint32_t sat : 1;
    uint32_t wrap : 1;   /* of shifts; else clamp */
    uint32_t second : 2; /* 0, or 1 add, 2 min, 3 max */
    uint32_t merges : 1; /* there is a c and no second operation */
    uint32_t po : 1;
    uint32_t shift : 4; /* of vmad: 0, 7, 15 */
    uint32_t negates_product : 1;
    uint32_t negates_c : 1;
    uint32_t cmp : 5; /* enum hed_ptx_cmp */
    uint16_t d_sel, a_sel, b_sel;
};

struct hed_ptx_inst;

struct hed_video hed_video_describe(const struct hed_ptx_inst *i);

uint32_t hed_ptx_video(uint32_t a, uint32_t b, uint32_t c, uint32_t how, uint64_t selectors);

/* The two constants that hed_ptx_video takes. */
uint32_t hed_video_how(const struct hed_video *v);
uint64_t hed_video_selectors(const struct hed_video *v);
