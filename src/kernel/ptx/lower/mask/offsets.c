/* Accesses whose address differs from lane to lane by what is known when the code is made: a load
 * moves each element once, whoever wants it, in vectors as long as elements lie next to each other,
 * and shuffles give the lanes their own.
 *
 *      offsets of lanes    0 0 16 16 0 0 16 16 ...     ld.shared.v2.b32
 *      elements            0 1      4 5                each lane wants two
 *      runs                [0 1]   [4 5]               two loads of two
 *      element 0           0 0 4 4 0 0 4 4 ...         one shuffle of what was loaded for each
 *      element 1           1 1 5 5 1 1 5 5 ...         element of a lane
 *
 * A store does the same backwards; of lanes that store to one place, the last one does. All that
 * needs all lanes to run.
 */
#include "base/number.h"
#include "kernel/ptx/lower/mask/mask.h"

#define COUNT_MAX 4 /* elements of a lane */
#define ALL_MAX (COUNT_MAX * HED_PTX_LANES)
#define UNITS_MAX ALL_MAX
#define RUNS_MAX HED_PTX_LANES
#define RUNS_OF_ANY_LENGTH 8 /* more of them must be worth it: */
#define LENGTH_WORTH_IT 4    /* elements in a run, on average */

/* What is moved: elements by their distance from the first lane's address, in units of their
 * size. */
struct plan {
    int64_t units[ALL_MAX]; /* in rising order, each once */
    unsigned nunits;
    unsigned runs[RUNS_MAX + 1]; /* where runs begin, as indices of units; and nunits */
    unsigned nruns;
    uint8_t at[COUNT_MAX][HED_PTX_LANES]; /* by element and lane: index of its unit */
};

static unsigned
element_bytes(const struct hed_lower_access *how)
{
    return LLVMGetIntTypeWidth(how->type) / 8;
}

static void
sort_units(struct plan *p)
{
    unsigned n = 0;

    for (unsigned i = 1; i < p->nunits; i++) {
        const int64_t v = p->units[i];
        unsigned k = i;

        for (; k && p->units[k - 1] > v; k--)
            p->units[k] = p->units[k - 1];
        p->units[k] = v;
    }
    for (unsigned i = 0; i < p->nunits; i++)
        if (n == 0 || p->units[i] != p->units[n - 1])
            p->units[n++] = p->units[i];
    p->nunits = n;
}

static bool
find_runs(struct plan *p)
{
    for (unsigned i = 0; i < p->nunits; i++) {
        if (i && p->units[i] == p->units[i - 1] + 1)
            continue;
        if (p->nruns == RUNS_MAX)
            return false;
        p->runs[p->nruns++] = i;
    }
    p->runs[p->nruns] = p->nunits;
    return p->nruns <= RUNS_OF_ANY_LENGTH || p->nunits >= LENGTH_WORTH_IT * p->nruns;
}

static unsigned
index_of_unit(const struct plan *p, int64_t unit)
{
    unsigned low = 0, high = p->nunits - 1;

    while (low < high) {
        const unsigned middle = (low + high) / 2;

        if (p->units[middle] < unit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* False: not worth it, or elements overlap in part. */
static bool
make_plan(const struct hed_offsets *o, const struct hed_lower_access *how, struct plan *p)
{
    const int64_t bytes = element_bytes(how);

    p->nunits = p->nruns = 0;
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        if (o->lanes[i] % bytes != 0 || (how->align && o->lanes[i] % (int64_t)how->align != 0))
            return false;
        for (unsigned e = 0; e < how->count; e++)
            p->units[p->nunits++] = o->lanes[i] / bytes + e;
    }
    sort_units(p);
    if (!find_runs(p))
        return false;
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        for (unsigned e = 0; e < how->count; e++)
            p->at[e][i] = (uint8_t)index_of_unit(p, o->lanes[i] / bytes + e);
    return true;
}

/* ---- code ------------------------------------------------------------------------------------ */

/* Where a run lies. */
static LLVMValueRef
run_pointer(struct hed_lower *l, const struct plan *p, const struct hed_lower_access *how,
            LLVMValueRef first, unsigned run)
{
    const int64_t distance = p->units[p->runs[run]] * (int64_t)element_bytes(how);

    return hed_lower_pointer(
        l, LLVMBuildAdd(l->b, first, LLVMConstInt(l->i64, (uint64_t)distance, true), ""));
}

static unsigned
run_align(const struct plan *p, const struct hed_lower_access *how, unsigned run)
{
    const unsigned bytes = element_bytes(how);
    const uint64_t distance = (uint64_t)p->units[p->runs[run]] * bytes;
    const uint64_t least = (distance | how->align) & -(distance | how->align);

    return how->align ? (unsigned)least : 1;
}

/* Elements `from` to `from` + n of v, and anything behind its end. */
static LLVMValueRef
shuffle_from(struct hed_lower *l, LLVMValueRef v, unsigned from, unsigned n, unsigned known)
{
    LLVMValueRef picks[ALL_MAX];

    for (unsigned i = 0; i < n; i++)
        picks[i] = i < known ? hed_lower_word(l, from + i) : LLVMGetPoison(l->i32);
    return LLVMBuildShuffleVector(l->b, v, LLVMGetPoison(LLVMTypeOf(v)), LLVMConstVector(picks, n),
                                  "");
}

/* All units in one vector, whose size is a power of two. */
static LLVMValueRef
load_units(struct hed_lower *l, const struct plan *p, const struct hed_lower_access *how,
           LLVMValueRef first)
{
    unsigned size = 1;
    LLVMValueRef all = NULL, picks[UNITS_MAX];

    while (size < p->nunits)
        size *= 2;
    for (unsigned r = 0; r < p->nruns; r++) {
        const unsigned from = p->runs[r], n = p->runs[r + 1] - from;
        LLVMValueRef v = LLVMBuildLoad2(l->b, LLVMVectorType(how->type, n),
                                        run_pointer(l, p, how, first, r), "");

        LLVMSetAlignment(v, run_align(p, how, r));
        if (n < size)
            v = shuffle_from(l, v, 0, size, n);
        if (all) {
            for (unsigned i = 0; i < size; i++)
                picks[i] = i < from       ? hed_lower_word(l, i)
                           : i < from + n ? hed_lower_word(l, size + i - from)
                                          : LLVMGetPoison(l->i32);
            v = LLVMBuildShuffleVector(l->b, all, v, LLVMConstVector(picks, size), "");
        }
        all = v;
    }
    return all;
}

static void
load_all(struct hed_lower *l, const struct plan *p, const struct hed_lower_access *how,
         LLVMValueRef first, LLVMValueRef *out)
{
    LLVMValueRef units = load_units(l, p, how, first), picks[HED_PTX_LANES];

    for (unsigned e = 0; e < how->count; e++) {
        for (unsigned i = 0; i < HED_PTX_LANES; i++)
            picks[i] = hed_lower_word(l, p->at[e][i]);
        out[e] = LLVMBuildShuffleVector(l->b, units, LLVMGetPoison(LLVMTypeOf(units)),
                                        LLVMConstVector(picks, HED_PTX_LANES), "");
    }
}

static void
store_all(struct hed_lower *l, const struct plan *p, const struct hed_lower_access *how,
          LLVMValueRef first, LLVMValueRef *in)
{
    LLVMValueRef parts[COUNT_MAX], picks[UNITS_MAX], all;

    for (unsigned e = 0; e < how->count; e++)
        parts[e] = in[e];
    all = hed_mask_join(l, parts, how->count);
    /* Later lanes replace what earlier ones put there. */
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        for (unsigned e = 0; e < how->count; e++)
            picks[p->at[e][i]] = hed_lower_word(l, e * HED_PTX_LANES + i);
    all = LLVMBuildShuffleVector(l->b, all, LLVMGetPoison(LLVMTypeOf(all)),
                                 LLVMConstVector(picks, p->nunits), "");
    for (unsigned r = 0; r < p->nruns; r++) {
        const unsigned from = p->runs[r], n = p->runs[r + 1] - from;
        LLVMValueRef v = n == p->nunits ? all : shuffle_from(l, all, from, n, n);

        LLVMSetAlignment(LLVMBuildStore(l->b, v, run_pointer(l, p, how, first, r)),
                         run_align(p, how, r));
    }
}

/* An i32 that is not 0 if lanes are off, or the first lane's address is misaligned; then those of
 * the others are, too. */
static LLVMValueRef
what_hinders(struct hed_lower *l, const struct hed_lower_place *at,
             const struct hed_lower_access *how, LLVMValueRef first)
{
    LLVMValueRef off = LLVMBuildNot(l->b, hed_lower_warp_bits(l), ""), low;

    if (hed_mask_is_aligned(l, at, how))
        return off;
    low = LLVMBuildAnd(l->b, first, LLVMConstInt(l->i64, how->align - 1, false), "");
    return LLVMBuildOr(l->b, off, LLVMBuildTrunc(l->b, low, l->i32, ""), "");
}

bool
hed_mask_move_offsets(struct hed_lower *l, const struct hed_lower_place *at,
                      const struct hed_lower_access *how, bool is_store, LLVMValueRef *values)
{
    const struct hed_uniform *c = at->reg ? &hed_mask_state(l)->uniforms.values[at->reg->id] : NULL;
    LLVMValueRef slots[COUNT_MAX] = {NULL}, got[HED_LOWER_ELEMENTS_MAX] = {NULL}, first;
    LLVMTypeRef t = LLVMVectorType(how->type, HED_PTX_LANES);
    LLVMBasicBlockRef fast, slow, after;
    struct plan p;

    if (!c || c->kind != HED_OFFSETS || how->is_volatile || how->count > COUNT_MAX ||
        how->count == 3 || how->order != LLVMAtomicOrderingNotAtomic ||
        !make_plan(c->offsets, how, &p))
        return false;
    fast = hed_lower_block(l, "");
    slow = hed_lower_block(l, "");
    after = hed_lower_block(l, "");
    for (unsigned e = 0; !is_store && e < how->count; e++)
        slots[e] = hed_lower_alloca(l, t, 1, 0);
    first = hed_mask_row_address(l, at, 0);
    hed_lower_unlikely(l, LLVMBuildIsNotNull(l->b, what_hinders(l, at, how, first), ""), slow,
                       fast);
    for (unsigned way = 0; way < 2; way++) {
        LLVMPositionBuilderAtEnd(l->b, way == 0 ? fast : slow);
        if (way == 0 && is_store)
            store_all(l, &p, how, first, values);
        else if (way == 0)
            load_all(l, &p, how, first, got);
        else if (is_store)
            hed_lower_warp_store(l, at, how, values);
        else
            hed_lower_warp_load(l, at, how, got);
        for (unsigned e = 0; !is_store && e < how->count; e++)
            LLVMBuildStore(l->b, got[e], slots[e]);
        LLVMBuildBr(l->b, after);
    }
    LLVMPositionBuilderAtEnd(l->b, after);
    for (unsigned e = 0; !is_store && e < how->count; e++)
        values[e] = LLVMBuildLoad2(l->b, t, slots[e], "");
    return true;
}
