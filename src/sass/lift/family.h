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

/* memory.c */
void hed_lift_load_global(struct lift *l);
void hed_lift_load_generic(struct lift *l);
void hed_lift_store_global(struct lift *l);
void hed_lift_store_generic(struct lift *l);
void hed_lift_load_shared(struct lift *l);
void hed_lift_store_shared(struct lift *l);
void hed_lift_load_local(struct lift *l);
void hed_lift_store_local(struct lift *l);
void hed_lift_copy(struct lift *l);
void hed_lift_copies_end(struct lift *l);
void hed_lift_copies_wait(struct lift *l);
void hed_lift_cache(struct lift *l);
void hed_lift_fence(struct lift *l);
void hed_lift_query_space(struct lift *l);

/* constant.c */
void hed_lift_load_constant(struct lift *l);

/* warp.c */
void hed_lift_special(struct lift *l);
void hed_lift_special_wide(struct lift *l);
void hed_lift_vote(struct lift *l);
void hed_lift_shuffle(struct lift *l);
void hed_lift_match(struct lift *l);
void hed_lift_reduce(struct lift *l);
void hed_lift_to_uniform(struct lift *l);
void hed_lift_meet(struct lift *l);
void hed_lift_barrier(struct lift *l);
void hed_lift_barrier_result(struct lift *l);
void hed_lift_save_barrier(struct lift *l);
void hed_lift_sleep(struct lift *l);
void hed_lift_trap(struct lift *l);
void hed_lift_own_place(struct lift *l);
