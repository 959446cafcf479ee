/* The functions that lift instructions, by the file they are in; table.c lists them by name. */
#pragma once

struct lift;

/* integer.c */
void hed_lift_add3(struct lift *l);
void hed_lift_mad(struct lift *l);
void hed_lift_lea(struct lift *l);
void hed_lift_min_max(struct lift *l);
void hed_lift_abs(struct lift *l);
void hed_lift_dot(struct lift *l);
void hed_lift_difference(struct lift *l);
void hed_lift_differences(struct lift *l);
void hed_lift_narrow(struct lift *l);
void hed_lift_clamp(struct lift *l);

/* shift.c */
void hed_lift_shift(struct lift *l);

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

/* converge.c */
void hed_lift_nop(struct lift *l);

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

/* constant.c */
void hed_lift_load_constant(struct lift *l);

/* window.c */
void hed_lift_query_space(struct lift *l);

/* mbarrier.c */
void hed_lift_copies_arrive(struct lift *l);
void hed_lift_shared_barrier(struct lift *l);

/* vector.c */
void hed_lift_vector_add(struct lift *l);
void hed_lift_vector_add_min_max(struct lift *l);
void hed_lift_vector_min_max(struct lift *l);
void hed_lift_vector_min_max3(struct lift *l);

/* warp.c */
void hed_lift_cluster_arrive(struct lift *l);
void hed_lift_cluster_wait(struct lift *l);
void hed_lift_elect(struct lift *l);
void hed_lift_end_group(struct lift *l);
void hed_lift_launch_dependents(struct lift *l);
void hed_lift_wait_for_grid(struct lift *l);
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
void hed_lift_part(struct lift *l);
void hed_lift_meet_again(struct lift *l);
void hed_lift_save_barrier(struct lift *l);
void hed_lift_sleep(struct lift *l);
void hed_lift_trap(struct lift *l);
void hed_lift_own_place(struct lift *l);

/* floating.c */
void hed_lift_fadd(struct lift *l);
void hed_lift_fmul(struct lift *l);
void hed_lift_ffma(struct lift *l);
void hed_lift_fmnmx(struct lift *l);
void hed_lift_fsel(struct lift *l);
void hed_lift_fset(struct lift *l);
void hed_lift_fsetp(struct lift *l);
void hed_lift_fchk(struct lift *l);
void hed_lift_mufu(struct lift *l);
void hed_lift_dadd(struct lift *l);
void hed_lift_dmul(struct lift *l);
void hed_lift_dfma(struct lift *l);
void hed_lift_dsetp(struct lift *l);

/* half.c */
void hed_lift_hadd2(struct lift *l);
void hed_lift_hmul2(struct lift *l);
void hed_lift_hfma2(struct lift *l);
void hed_lift_hset2(struct lift *l);
void hed_lift_hsetp2(struct lift *l);
void hed_lift_hmnmx2(struct lift *l);

/* convert.c */
void hed_lift_i2f(struct lift *l);
void hed_lift_f2i(struct lift *l);
void hed_lift_f2ip(struct lift *l);
void hed_lift_f2f(struct lift *l);
void hed_lift_f2fp(struct lift *l);
void hed_lift_frnd(struct lift *l);
/* atomic.c */
void hed_lift_atomic_global(struct lift *l);
void hed_lift_atomic_generic(struct lift *l);
void hed_lift_reduce_global(struct lift *l);
void hed_lift_atomic_shared(struct lift *l);

/* matrix.c */
void hed_lift_half_product(struct lift *l);
void hed_lift_integer_product(struct lift *l);
void hed_lift_bit_product(struct lift *l);
void hed_lift_double_product(struct lift *l);
void hed_lift_load_matrix(struct lift *l);
void hed_lift_store_matrix(struct lift *l);
void hed_lift_transpose(struct lift *l);

/* texture.c */
void hed_lift_sample(struct lift *l);
void hed_lift_fetch(struct lift *l);
void hed_lift_gather(struct lift *l);
void hed_lift_sample_gradient(struct lift *l);
void hed_lift_query_texture(struct lift *l);

/* surface.c */
void hed_lift_load_surface(struct lift *l);
void hed_lift_store_surface(struct lift *l);
void hed_lift_reduce_surface(struct lift *l);

/* call.c */
void hed_lift_call(struct lift *l);
