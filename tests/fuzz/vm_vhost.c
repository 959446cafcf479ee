/* Fuzz target: messages of QEMU (vhost-user), whole or in pieces, with descriptors. */
#include "fuzz/vm_play.h"

#define PIECE 64 /* bytes */

/* A message with a right head, or bytes as they are. */
static void
say_something(struct play *p, struct play_input *in)
{
    const uint8_t how = (uint8_t)play_number(in, 1);
    const int fd = how & 1 ? p->memory : p->event;
    const int fds = how >> 1 & 15;
    uint8_t bytes[2 * HED_VHOST_PAYLOAD];

    if (how & 32) {
        const size_t n = play_bytes(in, bytes, play_number(in, 1) % PIECE);

        play_say_raw(p, bytes, n, fd, fds);
        return;
    }

    const uint32_t request = (uint32_t)play_number(in, 1);
    const uint32_t flags = how & 64 ? (uint32_t)play_number(in, 1) : 1;
    const size_t n = play_bytes(in, bytes, play_number(in, 2) % sizeof bytes);

    play_say(p, request, flags, bytes, (uint32_t)n, fd, fds);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct play_input in = {data, data + size};
    struct play p;

    play_begin(&p);
    while (in.at < in.end && !p.ended) {
        say_something(&p, &in);
        play_turn(&p);
    }
    play_end(&p);
    return 0;
}
