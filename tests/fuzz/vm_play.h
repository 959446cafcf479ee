/* What the targets of the bridge share: a small guest, whose memory is written by the input, and
 * QEMU's end of the socket. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/fuzz.h"
#include "remote/server/vm/bridge.h"
#include "remote/server/vm/vhost.h"

#define PLAY_RAM 65536u
#define PLAY_BASE UINT64_C(0x100000)
#define PLAY_USER UINT64_C(0x7000000000)
#define PLAY_CID 5
#define PLAY_PORT 7717
#define PLAY_HOSTS 8 /* sockets of the host */

struct play_input {
    const uint8_t *at, *end;
};

struct play {
    struct hed_bridge *bridge;
    int vhost, listener;
    int memory; /* a memfd, the same for all inputs, and */
    uint8_t *ram;
    int event; /* an eventfd, as well */
    int hosts[PLAY_HOSTS];
    bool ended;
};

/* The next n bytes as a number, 8 at most; missing bytes are 0. */
uint64_t play_number(struct play_input *in, size_t n);
/* Copies up to n bytes. Returns how many there were. */
size_t play_bytes(struct play_input *in, void *to, size_t n);

void play_begin(struct play *p);
void play_end(struct play *p);
/* QEMU says something. `fds` of them come with it: the memory, or the event. */
void play_say_raw(struct play *p, const void *bytes, size_t n, int fd, int fds);
void play_say(struct play *p, uint32_t request, uint32_t flags, const void *payload, uint32_t n,
              int fd, int fds);
/* The bridge does what there is to do, unless it has come to its end. */
void play_turn(struct play *p);
