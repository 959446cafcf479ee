/* Files of the fuzz corpora for tests, and fat binaries that a test makes itself. */
#pragma once

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "harness/unit.h"
#include "kernel/fatbin/fatbin.h"
#include "kernel/fatbin/file.h"

/* Maps a file of the corpora. Mappings last as long as the process. */
static inline struct hed_bytes
fixture(const char *name)
{
    struct hed_bytes b;
    struct hed_why why = {""};
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", getenv("HED_CORPUS"), name);
    if (hed_fatbin_map(path, &b, &why) != 0)
        fail_msg("%s: %s", path, why.text);
    return b;
}

/* The n-th entry, from 0. */
static inline struct hed_fatbin_entry
entry_of(struct hed_bytes b, int n)
{
    struct hed_fatbin_entry e;
    struct hed_fatbin_walk w;

    assert_int_equal(hed_fatbin_walk(b, &w, NULL), 0);
    do {
        assert_int_equal(hed_fatbin_next(&w, &e, NULL), 1);
    } while (n-- > 0);
    return e;
}

static inline bool
says(struct hed_bytes b, const char *text)
{
    return b.size == strlen(text) && memcmp(b.data, text, b.size) == 0;
}

#define MAKE_MAX 4096

struct make {
    uint8_t data[MAKE_MAX];
    size_t size;
};

static inline struct hed_bytes
made(const struct make *m)
{
    return (struct hed_bytes){m->data, m->size};
}

static inline void
make_begin(struct make *m)
{
    static const uint8_t header[HED_FATBIN_HEADER_SIZE] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};

    memcpy(m->data, header, sizeof header);
    m->size = sizeof header;
}

/* An entry of 8 bytes. */
static inline void
make_entry(struct make *m, uint16_t kind, uint32_t arch, uint64_t flags)
{
    uint8_t *p = m->data + m->size;
    const uint32_t header = HED_FATBIN_ENTRY_SIZE;
    const uint64_t stored = 8;

    assert_true(m->size + header + stored <= MAKE_MAX);
    memset(p, 0, header + stored);
    memcpy(p, &kind, sizeof kind);
    memcpy(p + 4, &header, sizeof header);
    memcpy(p + 8, &stored, sizeof stored);
    memcpy(p + 0x1c, &arch, sizeof arch);
    memcpy(p + 0x28, &flags, sizeof flags);
    m->size += header + stored;

    const uint64_t body = m->size - HED_FATBIN_HEADER_SIZE;

    memcpy(m->data + 8, &body, sizeof body);
}

/* An entry of PTX as compilers make it, with space for options but without any. */
static inline void
make_ptx(struct make *m, uint32_t arch, const char *text)
{
    uint8_t *p = m->data + m->size;
    const uint32_t header = HED_FATBIN_ENTRY_SIZE + 16;
    const uint64_t stored = (strlen(text) + 1 + 7) / 8 * 8, flags = HED_FATBIN_64BIT;
    const uint16_t kind = HED_FATBIN_PTX;
    const uint32_t options = HED_FATBIN_ENTRY_SIZE, option_text = options + 8;

    assert_true(m->size + header + stored <= MAKE_MAX);
    memset(p, 0, header + stored);
    memcpy(p, &kind, sizeof kind);
    memcpy(p + 4, &header, sizeof header);
    memcpy(p + 8, &stored, sizeof stored);
    memcpy(p + 0x14, &options, sizeof options);
    memcpy(p + options, &option_text, sizeof option_text);
    memcpy(p + 0x1c, &arch, sizeof arch);
    memcpy(p + 0x28, &flags, sizeof flags);
    memcpy(p + header, text, strlen(text));
    m->size += header + stored;

    const uint64_t body = m->size - HED_FATBIN_HEADER_SIZE;

    memcpy(m->data + 8, &body, sizeof body);
}
