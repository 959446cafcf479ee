/* Fuzz target: decoding calls. The first byte chooses API, part and result, the next two the call.
 * A decoded call can be encoded and decoded again, and from then on nothing changes. */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/pack.h"
#include "gen/cuda_wire.h"
#include "gen/nvml_wire.h"

#define HEAD 3

static union {
    union hed_cuda_args cuda;
    union hed_nvml_args nvml;
} args;

static int result; /* of the call whose reply it is */
static uint8_t first[1 << 20];
static uint8_t second[1 << 20];

static void
get_call(struct hed_dec *d, bool nvml, uint32_t id, bool reply)
{
    if (nvml && reply)
        hed_nvml_get_reply(d, (enum hed_nvml_call)id, &args, result);
    else if (nvml)
        hed_nvml_get_request(d, (enum hed_nvml_call)id, &args);
    else if (reply)
        hed_cuda_get_reply(d, (enum hed_cuda_call)id, &args, result);
    else
        hed_cuda_get_request(d, (enum hed_cuda_call)id, &args);
}

static size_t
put_call(uint8_t *to, bool nvml, uint32_t id, bool reply)
{
    struct hed_enc e = hed_enc_over(to, sizeof first);

    if (nvml && reply)
        hed_nvml_put_reply(&e, (enum hed_nvml_call)id, &args, result);
    else if (nvml)
        hed_nvml_put_request(&e, (enum hed_nvml_call)id, &args);
    else if (reply)
        hed_cuda_put_reply(&e, (enum hed_cuda_call)id, &args, result);
    else
        hed_cuda_put_request(&e, (enum hed_cuda_call)id, &args);
    return e.err ? 0 : (size_t)(e.at - to);
}

static struct hed_arena arenas[2]; /* for the first time and the second */

/* Decodes a request and, if asked for, the bytes after it as its reply. */
static void
check_call(const uint8_t *data, size_t size, bool nvml, uint32_t id, bool reply)
{
    struct hed_dec d = hed_dec_over(data, size, &arenas[0]);

    memset(&args, 0, sizeof args);
    get_call(&d, nvml, id, false);
    if (reply && !d.err)
        get_call(&d, nvml, id, true);
    if (d.err)
        return;

    const size_t n = put_call(first, nvml, id, reply);

    if (n == 0 || reply)
        return;
    d = hed_dec_over(first, n, &arenas[1]);
    memset(&args, 0, sizeof args);
    get_call(&d, nvml, id, false);
    must(d.err == 0 && d.at == d.end);
    must(put_call(second, nvml, id, false) == n && memcmp(first, second, n) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint16_t id;

    if (size < HEAD)
        return 0;
    for (int i = 0; i < 2; i++)
        hed_arena_init(&arenas[i], 1 << 20);
    memcpy(&id, data + 1, sizeof id);

    const bool nvml = data[0] & 1;

    /* Some of the results with which calls set outputs although they fail. */
    result = (const int[]){0, 0, 1, 7, 500, 901, 910, 999}[data[0] >> 2 & 7];
    id = (uint16_t)(id % ((nvml ? HED_NVML_CALLS : HED_CUDA_CALLS) + 1));
    check_call(data + HEAD, size - HEAD, nvml, id, data[0] & 2);
    for (int i = 0; i < 2; i++)
        hed_arena_fini(&arenas[i]);
    return 0;
}
