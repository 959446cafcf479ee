/* The arithmetic of driver/table/integrity.h. */
#include "driver/table/integrity.h"

#include <string.h>

/* RFC 1319: "a 'random' permutation of 0..255 constructed from the digits of pi". */
static const uint8_t pi_digits[256] = {
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,
    243, 192, 199, 115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212,
    224, 22,  103, 66,  111, 24,  138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160,
    251, 245, 142, 187, 47,  238, 122, 169, 104, 121, 145, 21,  178, 7,   63,  148, 194, 16,  137,
    11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,  53,  62,  204, 231, 191, 247, 151,
    3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,  170, 198, 79,  184,
    56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,  100,
    113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246,
    28,  70,  97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249,
    206, 186, 197, 234, 38,  44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129,
    77,  82,  106, 220, 55,  200, 108, 193, 171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120,
    136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254, 59,  0,   29,  57,  242, 239, 183, 14,
    102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,  80,  180, 143, 237, 31,
    26,  219, 153, 141, 51,  159, 17,  131, 20};

struct md2 {
    uint8_t state[48];
    uint8_t checksum[16];
    uint8_t block[16];
    size_t used; /* bytes in block */
};

static void
md2_block(struct md2 *m, const uint8_t *block)
{
    uint8_t t = m->checksum[15];

    for (int i = 0; i < 16; i++) {
        t = m->checksum[i] ^= pi_digits[block[i] ^ t];
        m->state[16 + i] = block[i];
        m->state[32 + i] = block[i] ^ m->state[i];
    }
    t = 0;
    for (int round = 0; round < 18; round++) {
        for (int i = 0; i < 48; i++)
            t = m->state[i] ^= pi_digits[t];
        t = (uint8_t)(t + round);
    }
}

static void
md2_add(struct md2 *m, const void *p, size_t n)
{
    const uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++) {
        m->block[m->used++] = bytes[i];
        if (m->used == sizeof m->block) {
            md2_block(m, m->block);
            m->used = 0;
        }
    }
}

static void
md2_end(struct md2 *m, uint8_t out[16])
{
    uint8_t padding[16];
    uint8_t checksum[16];
    const size_t pad = 16 - m->used;

    memset(padding, (int)pad, sizeof padding);
    md2_add(m, padding, pad);
    memcpy(checksum, m->checksum, sizeof checksum);
    md2_add(m, checksum, sizeof checksum);
    memcpy(out, m->state, 16);
}

void
hed_md2(const void *p, size_t n, uint8_t out[16])
{
    struct md2 m = {.used = 0};

    md2_add(&m, p, n);
    md2_end(&m, out);
}

static void
add_u32(struct md2 *m, uint32_t v)
{
    md2_add(m, &v, sizeof v);
}

static void
add_u64(struct md2 *m, uint64_t v)
{
    md2_add(m, &v, sizeof v);
}

static void
add_message(struct md2 *m, const struct hed_integrity *in)
{
    add_u32(m, in->driver_version);
    add_u32(m, in->version);
    add_u32(m, in->process);
    add_u32(m, in->thread);
    add_u64(m, in->interface_table);
    add_u64(m, in->integrity_table);
    add_u64(m, in->function);
    add_u64(m, in->seconds);
    for (size_t i = 0; i < in->device_count; i++) {
        const struct hed_integrity_device *d = &in->devices[i];

        md2_add(m, d->uuid, sizeof d->uuid);
        add_u32(m, (uint32_t)d->pci_domain);
        add_u32(m, (uint32_t)d->pci_bus);
        add_u32(m, (uint32_t)d->pci_device);
    }
}

void
hed_integrity_answer(const struct hed_integrity *in, uint8_t out[16])
{
    static const uint8_t key[16] = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                                    0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};
    /* The driver answers versions +0 and +1 with a constant. */
    static const uint8_t fixed[16] = {0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x33,
                                      0xe8, 0xd1, 0x4c, 0x1f, 0xaa, 0x83, 0xd3, 0x8e};
    struct md2 inner = {.used = 0};
    struct md2 outer = {.used = 0};
    uint8_t digest[16];
    uint8_t pad[16];

    if (in->version % 10 < 2) {
        memcpy(out, fixed, sizeof fixed);
        if (in->version % 10 == 1)
            out[7] = 0x18;
        return;
    }
    for (int i = 0; i < 16; i++)
        pad[i] = key[i] ^ 0x36;
    md2_add(&inner, pad, sizeof pad);
    add_message(&inner, in);
    md2_end(&inner, digest);
    for (int i = 0; i < 16; i++)
        pad[i] = key[i] ^ 0x5c;
    md2_add(&outer, pad, sizeof pad);
    md2_add(&outer, digest, sizeof digest);
    md2_end(&outer, out);
}
