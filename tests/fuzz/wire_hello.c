/* Fuzz target: the first bytes of a session, as gates and workers check them. An accepted hello has
 * this version, knows the same calls, and terminates its texts.
 */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "gen/cuda_hash.h"
#include "gen/nvml_hash.h"
#include "remote/server/hello.h"
#include "remote/wire/link/link.h"
#include "remote/wire/transport.h"
#include "remote/wire/wire.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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

    const struct hed_link *link = data[0] & 1 ? &hed_link_tcp : &hed_link_unix;
    const int err = hed_hello_check(&h, link, &why);

    if (err) {
        must(why.text[0] != 0);
        return 0;
    }
    must(h.major == HED_WIRE_MAJOR && h.cuda_ids == HED_CUDA_HASH && h.nvml_ids == HED_NVML_HASH);
    must(memchr(h.name, 0, sizeof h.name) && memchr(h.visible, 0, sizeof h.visible));
    must((h.transport == HED_TRANSPORT_TCP) == (link == &hed_link_tcp));
    must(memchr(h.version, 0, sizeof h.version) && memchr(h.token, 0, sizeof h.token));
    return 0;
}
