/* The sizes of grids and blocks that a device allows, for launches by the host and by kernels. See
 * launch.h. */
#include "driver/machine.h"
#include "driver/module/launch.h"
#include "driver/module/occupancy.h"

/* Is n more than the device allows? Every device so far allows `any`, which saves a lookup. */
static inline bool
is_over_limit(const struct hed_profile *p, uint64_t n, uint32_t any, CUdevice_attribute a,
              uint32_t otherwise)
{
    return n > any && n > hed_profile_number(p, a, otherwise);
}

static bool
grid_shape_fits(const struct hed_profile *p, const uint32_t grid[3])
{
    return grid[0] != 0 && grid[1] != 0 && grid[2] != 0 &&
           !is_over_limit(p, grid[0], 65535, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX) &&
           !is_over_limit(p, grid[1], 65535, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535) &&
           !is_over_limit(p, grid[2], 65535, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535);
}

static bool
block_shape_fits(const struct hed_code_kernel *k, const struct hed_profile *p,
                 const uint32_t block[3])
{
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];

    if (threads == 0 ||
        is_over_limit(p, block[0], 512, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024) ||
        is_over_limit(p, block[1], 512, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024) ||
        is_over_limit(p, block[2], 64, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64) ||
        is_over_limit(p, threads, 512, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024))
        return false;
    if (k->max_threads && threads > k->max_threads)
        return false;
    return !k->required[0] ||
           (block[0] == k->required[0] && block[1] == (k->required[1] ? k->required[1] : 1) &&
            block[2] == (k->required[2] ? k->required[2] : 1));
}

bool
hed_launch_shape_fits(const struct hed_code_kernel *k, const struct hed_profile *p,
                      const uint32_t grid[3], const uint32_t block[3])
{
    return grid_shape_fits(p, grid) && block_shape_fits(k, p, block);
}
