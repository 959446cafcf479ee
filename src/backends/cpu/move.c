/* Copies and fills that kernels ask for: a kernel of one thread, in C. See children.h. */
#include <string.h>

#include "backends/cpu/children.h"
#include "base/number.h"
#include "kernel/engine.h"

#define PIECE \
    ((uint64_t)1 << 30) /* bytes at a time, which stay within the margin of an address sandbox */

static void
move_piece(const struct hed_ptx_warp *s, const struct hed_move *m, uint64_t to, uint64_t from,
           size_t size)
{
    void *at = (void *)(uintptr_t)hed_ptx_in_sandbox(s->grid, to);

    if (m->is_fill)
        memset(at, (int)m->value, size);
    else
        memmove(at, (const void *)(uintptr_t)hed_ptx_in_sandbox(s->grid, from), size);
}

void
hed_cpu_move_rows(struct hed_ptx_warp *s)
{
    struct hed_move m;

    memcpy(&m, s->grid->params, sizeof m);
    for (uint64_t y = 0; y < m.height && !hed_grid_has_failed(hed_grid_of(s)); y++)
        for (uint64_t x = 0; x < m.width; x += PIECE)
            move_piece(s, &m, m.to + y * m.to_pitch + x, m.from + y * m.from_pitch + x,
                       hed_min(m.width - x, PIECE));
}
