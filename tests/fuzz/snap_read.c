/* Fuzz target: a snapshot and the one that it needs.
 *
 * The input is the size of the first file (u32), the first file, the second file. It is read as it
 * is, and with correct checksums.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "snap_play.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t first;

    if (size < sizeof first)
        return 0;
    memcpy(&first, data, sizeof first);
    data += sizeof first;
    size -= sizeof first;
    first = (uint32_t)hed_min(first, size);

    uint8_t *copy = malloc(size ? size : 1);
    struct snap_input in = {{data, data + first}, {first, size - first}};

    snap_play(&in, false);
    if (copy && size) {
        memcpy(copy, data, size);
        snap_repair(copy, first);
        snap_repair(copy + first, size - first);
        in.data[0] = copy;
        in.data[1] = copy + first;
        snap_play(&in, true);
    }
    free(copy);
    return 0;
}
