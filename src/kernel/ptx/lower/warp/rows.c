/* Transposes in registers. See rows.h.
 *
 * Lanes k and k + 4 are the halves of one vector, so that all shuffles stay within 128 bits: those
 * are the cheap ones everywhere.
 */
#include "kernel/ptx/lower/warp/rows.h"

#define HALF (HED_LOWER_ROWS / 2)

bool
hed_lower_has_rows(LLVMTypeRef element, unsigned count)
{
    return LLVMGetIntTypeWidth(element) == 32 && (count == 2 || count == HED_LOWER_ROWS_ELEMENTS);
}

/* picks: of both vectors together, for each element of the result. */
static LLVMValueRef
shuffle_words(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, const uint8_t *picks, unsigned n)
{
    LLVMValueRef words[HED_LOWER_ROWS];

    for (unsigned i = 0; i < n; i++)
        words[i] = hed_lower_word(l, picks[i]);
    return LLVMBuildShuffleVector(l->b, a, b, LLVMConstVector(words, n), "");
}

/* The first, or the last, two words of each half of a and b, in turns. */
static LLVMValueRef
interleave(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, bool last)
{
    static const uint8_t picks[2][HED_LOWER_ROWS] = {{0, 8, 1, 9, 4, 12, 5, 13},
                                                     {2, 10, 3, 11, 6, 14, 7, 15}};

    return shuffle_words(l, a, b, picks[last], HED_LOWER_ROWS);
}

/* The first, or the last, two words of each half of a, and then those of b. */
static LLVMValueRef
join_pairs(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, bool last)
{
    static const uint8_t picks[2][HED_LOWER_ROWS] = {{0, 1, 8, 9, 4, 5, 12, 13},
                                                     {2, 3, 10, 11, 6, 7, 14, 15}};

    return shuffle_words(l, a, b, picks[last], HED_LOWER_ROWS);
}

/* In each half, rows become columns. Its own inverse. */
static void
transpose_words(struct hed_lower *l, LLVMValueRef *v)
{
    LLVMValueRef low01 = interleave(l, v[0], v[1], false), low23 = interleave(l, v[2], v[3], false);
    LLVMValueRef high01 = interleave(l, v[0], v[1], true), high23 = interleave(l, v[2], v[3], true);

    v[0] = join_pairs(l, low01, low23, false);
    v[1] = join_pairs(l, low01, low23, true);
    v[2] = join_pairs(l, high01, high23, false);
    v[3] = join_pairs(l, high01, high23, true);
}

static LLVMValueRef
load_row(struct hed_lower *l, LLVMValueRef at, const struct hed_lower_access *how)
{
    LLVMValueRef v = LLVMBuildLoad2(l->b, LLVMVectorType(how->type, how->count), at, "");

    LLVMSetAlignment(v, how->align ? how->align : 1);
    return v;
}

void
hed_lower_load_rows(struct hed_lower *l, const LLVMValueRef *at, const struct hed_lower_access *how,
                    LLVMValueRef *v)
{
    static const uint8_t both[] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const uint8_t even[] = {0, 2, 4, 6, 8, 10, 12, 14}, odd[] = {1, 3, 5, 7, 9, 11, 13, 15};
    LLVMValueRef rows[HED_LOWER_ROWS];

    for (unsigned i = 0; i < HED_LOWER_ROWS; i++)
        rows[i] = load_row(l, at[i], how);
    if (how->count == HED_LOWER_ROWS_ELEMENTS) {
        for (unsigned i = 0; i < HALF; i++)
            v[i] = shuffle_words(l, rows[i], rows[i + HALF], both, HED_LOWER_ROWS);
        transpose_words(l, v);
        return;
    }
    for (unsigned n = HED_LOWER_ROWS; n > 2; n /= 2)
        for (unsigned i = 0; i < n / 2; i++)
            rows[i] =
                shuffle_words(l, rows[2 * i], rows[2 * i + 1], both, 2 * HED_LOWER_ROWS / n * 2);
    v[0] = shuffle_words(l, rows[0], rows[1], even, HED_LOWER_ROWS);
    v[1] = shuffle_words(l, rows[0], rows[1], odd, HED_LOWER_ROWS);
}

/* Words first to first + count - 1 of a vector. */
static void
store_row(struct hed_lower *l, LLVMValueRef at, const struct hed_lower_access *how, LLVMValueRef v,
          unsigned first)
{
    uint8_t picks[HED_LOWER_ROWS_ELEMENTS];

    for (unsigned i = 0; i < how->count; i++)
        picks[i] = (uint8_t)(first + i);
    v = shuffle_words(l, v, LLVMGetPoison(LLVMTypeOf(v)), picks, how->count);
    LLVMSetAlignment(LLVMBuildStore(l->b, v, at), how->align ? how->align : 1);
}

void
hed_lower_store_rows(struct hed_lower *l, const LLVMValueRef *at,
                     const struct hed_lower_access *how, const LLVMValueRef *v)
{
    LLVMValueRef rows[HED_LOWER_ROWS_ELEMENTS];

    if (how->count == HED_LOWER_ROWS_ELEMENTS) {
        for (unsigned i = 0; i < HED_LOWER_ROWS_ELEMENTS; i++)
            rows[i] = v[i];
        transpose_words(l, rows);
        for (unsigned i = 0; i < HED_LOWER_ROWS; i++)
            store_row(l, at[i], how, rows[i % HALF], i / HALF * HALF);
        return;
    }
    /* Lanes 0, 1, 4, 5 and 2, 3, 6, 7. */
    rows[0] = interleave(l, v[0], v[1], false);
    rows[1] = interleave(l, v[0], v[1], true);
    for (unsigned i = 0; i < HED_LOWER_ROWS; i++)
        store_row(l, at[i], how, rows[i / 2 % 2], i % 2 * 2 + i / HALF * HALF);
}
