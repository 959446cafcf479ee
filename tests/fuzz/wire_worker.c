/* Fuzz target: a session. The input is split into messages, which a worker on the null backend gets
 * until it ends the session:
 *
 *     u8 kind, u8 flags, u16 call, u8 stream, u8 context, u16 bulk, u16 size, then `size` bytes
 *
 * The bytes after the last message are the bulk data of all of them.
 */
#include "harness/fuzz.h"

#include <string.h>

#include "worker_play.h"

#define HEAD 10
#define MESSAGES_MAX 64

static _Alignas(16) uint8_t bytes[HED_MSG_MAX];

static uint16_t
word(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

/* The size of the message at p; 0: it is incomplete. */
static size_t
length(const uint8_t *p, size_t size)
{
    const size_t n = size < HEAD ? 0 : HEAD + (size_t)word(p + 8);

    return n <= size && n - HEAD <= HED_MSG_MAX - sizeof(struct hed_msg) ? n : 0;
}

/* A stream or context: a small number means itself, others mean a name of that kind. */
static uint64_t
some(uint8_t byte, unsigned kind)
{
    return byte < 4 ? byte : play_name(byte < 200 ? kind : byte % PLAY_KINDS + 1u) + byte % 2;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t ends[MESSAGES_MAX + 1] = {0};
    unsigned count = 0;

    while (count < MESSAGES_MAX) {
        const size_t n = length(data + ends[count], size - ends[count]);

        if (n == 0)
            break;
        ends[count + 1] = ends[count] + n;
        count++;
    }

    struct hed_worker_channel *ch = play_begin(data + ends[count], size - ends[count]);
    int err = 0;

    for (unsigned i = 0; i < count && !err; i++) {
        const uint8_t *p = data + ends[i];
        const size_t body = ends[i + 1] - ends[i] - HEAD;
        struct hed_msg *m = (struct hed_msg *)bytes;

        memcpy(m + 1, p + HEAD, body);
        *m = (struct hed_msg){
            .size = (uint32_t)(sizeof *m + body),
            .kind = (uint16_t)(p[0] % (HED_MSG_KINDS + 1)),
            .flags = p[1] & 3,
            .call = word(p + 2),
            .ticket = p[1] >> 7 ? 0 : 1,
            .stream = some(p[4], 2),
            .context = some(p[5], 1),
            .bulk = word(p + 6),
            .number = i + 1,
        };
        err = play_message(ch, m);
    }
    return 0;
}
