/* Which function lifts which instruction. */
#include <stdlib.h>
#include <string.h>

#include "sass/lift/family.h"
#include "sass/lift/inside.h"

static const struct row {
    const char *name; /* sorted */
    lift_fn fn;
} rows[] = {
    {"ATOM", hed_lift_atomic_generic},
    {"ATOMG", hed_lift_atomic_global},
    {"ATOMS", hed_lift_atomic_shared},
    {"B2R", hed_lift_barrier_result},
    {"BAR", hed_lift_barrier},
    {"BMOV", hed_lift_save_barrier},
    {"BMSK", hed_lift_mask},
    {"BPT", hed_lift_trap},
    {"BREAK", hed_lift_nothing},
    {"BREV", hed_lift_reverse},
    {"BSSY", hed_lift_nothing},
    {"BSYNC", hed_lift_nothing},
    {"CALL", hed_lift_call},
    {"CCTL", hed_lift_cache},
    {"CS2R", hed_lift_special_wide},
    {"DADD", hed_lift_dadd},
    {"DEPBAR", hed_lift_copies_wait},
    {"DFMA", hed_lift_dfma},
    {"DMMA", hed_lift_double_product},
    {"DMUL", hed_lift_dmul},
    {"DSETP", hed_lift_dsetp},
    {"ERRBAR", hed_lift_nothing},
    {"F2F", hed_lift_f2f},
    {"F2FP", hed_lift_f2fp},
    {"F2I", hed_lift_f2i},
    {"FADD", hed_lift_fadd},
    {"FCHK", hed_lift_fchk},
    {"FFMA", hed_lift_ffma},
    {"FLO", hed_lift_find_leading},
    {"FMNMX", hed_lift_fmnmx},
    {"FMUL", hed_lift_fmul},
    {"FRND", hed_lift_frnd},
    {"FSEL", hed_lift_fsel},
    {"FSET", hed_lift_fset},
    {"FSETP", hed_lift_fsetp},
    {"HADD2", hed_lift_hadd2},
    {"HFMA2", hed_lift_hfma2},
    {"HMMA", hed_lift_half_product},
    {"HMNMX2", hed_lift_hmnmx2},
    {"HMUL2", hed_lift_hmul2},
    {"HSET2", hed_lift_hset2},
    {"HSETP2", hed_lift_hsetp2},
    {"I2F", hed_lift_i2f},
    {"I2I", hed_lift_clamp},
    {"I2IP", hed_lift_narrow},
    {"IABS", hed_lift_abs},
    {"IADD3", hed_lift_add3},
    {"IDP", hed_lift_dot},
    {"IMAD", hed_lift_mad},
    {"IMMA", hed_lift_integer_product},
    {"IMNMX", hed_lift_min_max},
    {"ISETP", hed_lift_compare},
    {"LD", hed_lift_load_generic},
    {"LDC", hed_lift_load_constant},
    {"LDG", hed_lift_load_global},
    {"LDGDEPBAR", hed_lift_copies_end},
    {"LDGSTS", hed_lift_copy},
    {"LDL", hed_lift_load_local},
    {"LDS", hed_lift_load_shared},
    {"LDSM", hed_lift_load_matrix},
    {"LEA", hed_lift_lea},
    {"LEPC", hed_lift_own_place},
    {"LOP3", hed_lift_logic},
    {"MATCH", hed_lift_match},
    {"MEMBAR", hed_lift_fence},
    {"MOV", hed_lift_move},
    {"MOVM", hed_lift_transpose},
    {"MUFU", hed_lift_mufu},
    {"NANOSLEEP", hed_lift_sleep},
    {"NOP", hed_lift_nothing},
    {"P2R", hed_lift_preds_to_reg},
    {"PLOP3", hed_lift_pred_logic},
    {"PMTRIG", hed_lift_nothing},
    {"POPC", hed_lift_count},
    {"PRMT", hed_lift_permute},
    {"QSPC", hed_lift_query_space},
    {"R2P", hed_lift_reg_to_preds},
    {"R2UR", hed_lift_to_uniform},
    {"RED", hed_lift_reduce_global},
    {"REDUX", hed_lift_reduce},
    {"S2R", hed_lift_special},
    {"S2UR", hed_lift_special},
    {"SEL", hed_lift_select},
    {"SGXT", hed_lift_extend},
    {"SHF", hed_lift_shift},
    {"SHFL", hed_lift_shuffle},
    {"ST", hed_lift_store_generic},
    {"STG", hed_lift_store_global},
    {"STL", hed_lift_store_local},
    {"STS", hed_lift_store_shared},
    {"UBMSK", hed_lift_mask},
    {"UFLO", hed_lift_find_leading},
    {"UIADD3", hed_lift_add3},
    {"UIMAD", hed_lift_mad},
    {"UISETP", hed_lift_compare},
    {"ULDC", hed_lift_load_constant},
    {"ULEA", hed_lift_lea},
    {"ULOP3", hed_lift_logic},
    {"UMOV", hed_lift_move},
    {"UP2UR", hed_lift_preds_to_reg},
    {"UPLOP3", hed_lift_pred_logic},
    {"UPOPC", hed_lift_count},
    {"UPRMT", hed_lift_permute},
    {"USEL", hed_lift_select},
    {"USGXT", hed_lift_extend},
    {"USHF", hed_lift_shift},
    {"VABSDIFF", hed_lift_difference},
    {"VABSDIFF4", hed_lift_differences},
    {"VOTE", hed_lift_vote},
    {"VOTEU", hed_lift_vote},
    {"WARPSYNC", hed_lift_meet},
    {"YIELD", hed_lift_nothing},
};

static int
compare_row(const void *key, const void *row)
{
    return strcmp(key, ((const struct row *)row)->name);
}

lift_fn
hed_lift_find(const char *name)
{
    const struct row *r =
        bsearch(name, rows, sizeof rows / sizeof rows[0], sizeof rows[0], compare_row);

    return r ? r->fn : NULL;
}
