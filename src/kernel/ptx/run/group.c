/* The functions of group.h by name. */
#include "kernel/ptx/run/group.h"

const struct hed_ptx_symbol hed_ptx_group_helpers[] = {
    {"hed_ptx_mbarrier_init", (const void *)hed_ptx_mbarrier_init},
    {"hed_ptx_mbarrier_arrive", (const void *)hed_ptx_mbarrier_arrive},
    {"hed_ptx_mbarrier_test", (const void *)hed_ptx_mbarrier_test},
    {"hed_ptx_mbarrier_pending", (const void *)hed_ptx_mbarrier_pending},
    {"hed_ptx_mma", (const void *)hed_ptx_mma},
    {"hed_ptx_ldmatrix", (const void *)hed_ptx_ldmatrix},
    {"hed_ptx_stmatrix", (const void *)hed_ptx_stmatrix},
    {"hed_ptx_movmatrix", (const void *)hed_ptx_movmatrix},
    {"hed_ptx_wmma_load", (const void *)hed_ptx_wmma_load},
    {"hed_ptx_wmma_store", (const void *)hed_ptx_wmma_store},
    {NULL, NULL},
};
