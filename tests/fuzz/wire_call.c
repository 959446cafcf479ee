/* Fuzz target: a call of an untrusted client, from its bytes to its answer, on the null backend.
 *
 *     u8 bits   1: NVML, 2: an answer is wanted, 4: it may block
 *     u16 call, u8 names, then the request; the names of new objects are made up
 */
#include "harness/fuzz.h"

#include <string.h>

#include "gen/cuda_calls.h"
#include "gen/nvml_calls.h"
#include "worker_play.h"

#define HEAD 4
#define NAMES_MAX 4

static _Alignas(16) uint8_t bytes[HED_MSG_MAX];

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hed_msg *m = (struct hed_msg *)bytes;
    struct hed_call_body *b = (struct hed_call_body *)(m + 1);
    uint16_t call;

    if (size < HEAD || size - HEAD > HED_MSG_MAX / 2)
        return 0;
    memcpy(&call, data + 1, sizeof call);

    const bool nvml = data[0] & 1;
    const uint32_t names = data[3] & NAMES_MAX;
    const uint32_t request = (uint32_t)(size - HEAD);
    const size_t at = (sizeof *m + sizeof *b + request + 7) / 8 * 8;
    struct hed_worker_channel *ch = play_begin(NULL, 0);

    *m = (struct hed_msg){
        .size = (uint32_t)(at + names * sizeof(uint64_t)),
        .kind = nvml ? HED_MSG_NVML : HED_MSG_CALL,
        .call = (uint16_t)(call % ((nvml ? HED_NVML_CALLS : HED_CUDA_CALLS) + 1)),
        .flags = data[0] >> 1 & (HED_MSG_WANTS_ANSWER | HED_MSG_BLOCKS),
        .ticket = 1,
        .context = play_name(1),
    };
    *b = (struct hed_call_body){request, names};
    memset(b + 1, 0, at - sizeof *m - sizeof *b);
    memcpy(b + 1, data + HEAD, request);
    for (uint32_t i = 0; i < names; i++) {
        const uint64_t name = play_name(data[3] >> 3) + 1 + i;

        memcpy(bytes + at + i * sizeof name, &name, sizeof name);
    }
    (void)play_message(ch, m);
    return 0;
}
