/* Fuzz target: the first bytes of a session, as a worker checks them. An accepted hello has this
 * version, knows the same calls, terminates its texts, and has the token if a client without a
 * certificate needs one.
 */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "gen/cuda_hash.h"
#include "gen/nvml_hash.h"
#include "server/worker/worker.h"
#include "wire/link/link.h"

#define TOKEN "between us"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hed_worker_start start = {.conn = -1, .control = -1};
    struct hed_worker w = {.start = &start};
    struct hed_hello h;
    struct hed_why why = {""};

    if (size < 1)
        return 0;
    /* Missing bytes are filled in correctly, so that the fuzzer need not guess the hashes. */
    memset(&h, 0, sizeof h);
    h.head.size = sizeof h;
    h.head.kind = HED_MSG_HELLO;
    h.major = HED_WIRE_MAJOR;
    h.transport = HED_TRANSPORT_SHM;
    h.cuda_ids = HED_CUDA_HASH;
    h.nvml_ids = HED_NVML_HASH;
    for (size_t i = 1; i + 2 < size; i += 3) {
        const size_t at = (size_t)(data[i] | data[i + 1] << 8) % sizeof h;

        ((uint8_t *)&h)[at] = data[i + 2];
    }
    start.link = data[0] & 1 ? &hed_link_tcp : &hed_link_unix;
    start.token = data[0] & 2 ? TOKEN : NULL;

    const bool certified = data[0] & 4; /* by TLS, and then needs no token */
    const int err = hed_worker_check_hello(&w, &h, certified, &why);

    if (err) {
        must(why.text[0] != 0);
        return 0;
    }
    must(h.major == HED_WIRE_MAJOR && h.cuda_ids == HED_CUDA_HASH && h.nvml_ids == HED_NVML_HASH);
    must(memchr(h.name, 0, sizeof h.name) && memchr(h.visible, 0, sizeof h.visible));
    must((h.transport == HED_TRANSPORT_TCP) == (start.link == &hed_link_tcp));
    must(!start.token || certified || strcmp(h.token, TOKEN) == 0);
    return 0;
}
