/* Finds out how much memory of each device can be leased. The listener needs it, but makes no CUDA
 * call itself. */
#include <stdlib.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "core/session.h"
#include "remote/server/lease_socket.h"
#include "remote/server/start.h"
#include "remote/server/worker/worker.h"

#define KEPT_BACK (UINT64_C(512) << 20) /* bytes of a GPU that are not leased: contexts, code */

int
hed_worker_probe(int fd)
{
    uint64_t total[HED_LEASE_SOCKET_DEVICES] = {0};
    struct hed_worker_start start = {0};
    struct hed_worker w = {.start = &start};
    struct hed_why why = {""};

    /* What one client may have is not the question. */
    (void)unsetenv("HEDDLE_MEM");
    hed_session_stay_here();
    if (hed_worker_start_backend(&w, &why) != 0) {
        hed_warn(SERVER, "%s", why.text);
        return 1;
    }
    for (int i = 0; i < w.device_count; i++) {
        const uint64_t back = w.backend == HED_BACKEND_GPU ? KEPT_BACK : 0;
        const uint64_t bytes = hed_worker_device_bytes(&w, i);

        total[i] = bytes > back ? bytes - back : 0;
    }
    return hed_write_all(fd, total, sizeof total) == 0 ? 0 : 1;
}
