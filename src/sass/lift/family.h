/* The functions that lift instructions, by the file they are in; table.c lists them by name. */
#pragma once

struct lift;

/* integer.c */
void hed_lift_add3(struct lift *l);
void hed_lift_mad(struct lift *l);
void hed_lift_lea(struct lift *l);
void hed_lift_shift(struct lift *l);
void hed_lift_min_max(struct lift *l);
void hed_lift_abs(struct lift *l);
void hed_lift_dot(struct lift *l);
void hed_lift_difference(struct lift *l);
void hed_lift_narrow(struct lift *l);

/* logic.c */
void hed_lift_move(struct lift *l);
void hed_lift_select(struct lift *l);
void hed_lift_logic(struct lift *l);
void hed_lift_permute(struct lift *l);
void hed_lift_extend(struct lift *l);
void hed_lift_mask(struct lift *l);
void hed_lift_find_leading(struct lift *l);
void hed_lift_count(struct lift *l);
void hed_lift_reverse(struct lift *l);
void hed_lift_compare(struct lift *l);
void hed_lift_pred_logic(struct lift *l);
void hed_lift_preds_to_reg(struct lift *l);
void hed_lift_reg_to_preds(struct lift *l);
void hed_lift_nothing(struct lift *l);
