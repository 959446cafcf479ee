/* Which function lifts which instruction. */
#include <stdlib.h>
#include <string.h>

#include "sass/lift/family.h"
#include "sass/lift/inside.h"

static const struct row {
    const char *name; /* sorted */
    lift_fn fn;
} rows[] = {
    {"BMSK", hed_lift_mask},
    {"BREV", hed_lift_reverse},
    {"FLO", hed_lift_find_leading},
    {"I2IP", hed_lift_narrow},
    {"IABS", hed_lift_abs},
    {"IADD3", hed_lift_add3},
    {"IDP", hed_lift_dot},
    {"IMAD", hed_lift_mad},
    {"IMNMX", hed_lift_min_max},
    {"ISETP", hed_lift_compare},
    {"LEA", hed_lift_lea},
    {"LOP3", hed_lift_logic},
    {"MOV", hed_lift_move},
    {"NOP", hed_lift_nothing},
    {"P2R", hed_lift_preds_to_reg},
    {"PLOP3", hed_lift_pred_logic},
    {"POPC", hed_lift_count},
    {"PRMT", hed_lift_permute},
    {"R2P", hed_lift_reg_to_preds},
    {"SEL", hed_lift_select},
    {"SGXT", hed_lift_extend},
    {"SHF", hed_lift_shift},
    {"UBMSK", hed_lift_mask},
    {"UFLO", hed_lift_find_leading},
    {"UIADD3", hed_lift_add3},
    {"UIMAD", hed_lift_mad},
    {"UISETP", hed_lift_compare},
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
