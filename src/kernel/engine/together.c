/* The functions of kernel/ptx/run/group.h on matrices, as compiled code calls them.
 *
 * They take long and get no warp, so compiled code that calls them in a loop is nearly always in
 * one of them, where its thread cannot be interrupted (watch.h). So they look themselves whether
 * the grid has failed meanwhile, as the functions do that get a warp (hed_engine_warp_look()).
 */
#include "kernel/engine/engine_parts.h"
#include "kernel/ptx/run/group.h"

/* What the thread works as, while it works on a grid. */
static _Thread_local struct hed_engine_worker *this_worker;

struct hed_engine_worker *
hed_engine_worker_begin(struct hed_engine_worker *w)
{
    struct hed_engine_worker *before = this_worker;

    this_worker = w;
    return before;
}

static void
leave_failed_grid(void)
{
    const struct hed_engine_worker *w = this_worker;

    if (!w || !w->running || !hed_grid_failed(w->grid))
        return;
    hed_engine_warp_abandon(w->grid->direct && w->direct.run.running
                                ? hed_engine_warp_of(w->direct.run.running)
                                : w->running);
}

#define TOGETHER(name)                                                                        \
    static void name##_or_leave(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg) \
    {                                                                                         \
        name(data, mask, arg);                                                                \
        leave_failed_grid();                                                                  \
    }

TOGETHER(hed_ptx_mma)
TOGETHER(hed_ptx_ldmatrix)
TOGETHER(hed_ptx_stmatrix)
TOGETHER(hed_ptx_movmatrix)
TOGETHER(hed_ptx_wmma_load)
TOGETHER(hed_ptx_wmma_store)

const struct hed_ptx_symbol hed_engine_together[] = {
    {"hed_ptx_mma", (const void *)hed_ptx_mma_or_leave},
    {"hed_ptx_ldmatrix", (const void *)hed_ptx_ldmatrix_or_leave},
    {"hed_ptx_stmatrix", (const void *)hed_ptx_stmatrix_or_leave},
    {"hed_ptx_movmatrix", (const void *)hed_ptx_movmatrix_or_leave},
    {"hed_ptx_wmma_load", (const void *)hed_ptx_wmma_load_or_leave},
    {"hed_ptx_wmma_store", (const void *)hed_ptx_wmma_store_or_leave},
    {NULL, NULL},
};
