/* The lists of the compiler's passes (passes.c), and what runs them. */
#pragma once

#include <stdbool.h>

struct hed_lower;

struct hed_pass {
    const char *name;
    const char *does; /* for people: heddle cpu explain --passes */
    /* Returns 0, or an error, which is also in l->err. HED_ENOTSUP: this shape cannot do it. */
    int (*run)(struct hed_lower *l);
    bool is_of_confined; /* only for code that stays in its address sandbox */
};

/* Each ends with a pass without a name. */
extern const struct hed_pass hed_passes_of_module[]; /* any shape: a kernel to its object file */
extern const struct hed_pass hed_passes_of_masks[];  /* a kernel in the mask shape */

/* Runs a list until one of it fails, and reports each to options->on_pass. Returns l->err. */
int hed_lower_run_passes(struct hed_lower *l, const struct hed_pass *list);

/* For the pass that runs: what it has found or made, in a few words. */
void hed_pass_did(struct hed_lower *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* compile.c */
int hed_pass_code(struct hed_lower *l);
int hed_pass_verify(struct hed_lower *l);
int hed_pass_optimise(struct hed_lower *l);
int hed_pass_object(struct hed_lower *l);

/* sandbox.c: is each pointer in the module in its place? HED_ESTATE. */
int hed_pass_check_sandbox(struct hed_lower *l);
/* Makes ends that LLVM takes for impossible traps. */
int hed_pass_close_ends(struct hed_lower *l);

/* mask/analyse.c */
int hed_pass_flow(struct hed_lower *l);
int hed_pass_ssa(struct hed_lower *l);
int hed_pass_tidy(struct hed_lower *l);
int hed_pass_uniform(struct hed_lower *l);
int hed_pass_masks(struct hed_lower *l);
int hed_pass_nan(struct hed_lower *l);
int hed_pass_solo(struct hed_lower *l);
int hed_pass_guess(struct hed_lower *l);
int hed_pass_tiles(struct hed_lower *l);

/* mask/mask.c */
int hed_pass_frame(struct hed_lower *l);
int hed_pass_blocks(struct hed_lower *l);
