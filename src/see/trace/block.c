/* Walking the blocks of a trace file. */
#include "see/trace/block.h"

#include <string.h>

#include "see/trace/format.h"

#define MAGIC_SIZE 4

/* How often a search may read the file over. Enough for honest damage; a file made of headers that
 * promise much does not keep us busy for long.
 */
#define WORK_FACTOR 8

struct head {
    char magic[MAGIC_SIZE];
    uint32_t type;
    uint32_t size;
    uint32_t crc;
    uint64_t thread;
    uint64_t number;
};

_Static_assert(sizeof(struct head) == HED_TRACE_BLOCK_HEADER, "a block's header has no padding");

struct hed_trace_block_scan
hed_trace_block_begin(const void *file, size_t size, size_t header)
{
    return (struct hed_trace_block_scan){
        .file = file,
        .size = size,
        .at = header < size ? header : size,
        .work = (uint64_t)size * WORK_FACTOR + HED_TRACE_BLOCK_MAX,
    };
}

/* Does a header stand at `at`? Its block may be larger than what is left of the file. */
static bool
block_at(const struct hed_trace_block_scan *s, size_t at, struct head *h)
{
    if (s->size - at < sizeof(*h))
        return false;
    memcpy(h, s->file + at, sizeof(*h));
    return memcmp(h->magic, HED_TRACE_BLOCK_MAGIC, MAGIC_SIZE) == 0 &&
           h->size <= HED_TRACE_BLOCK_MAX;
}

static bool
sound_at(const struct hed_trace_block_scan *s, size_t at, struct head *h)
{
    return block_at(s, at, h) && h->size <= s->size - at - sizeof(*h) &&
           hed_trace_block_crc(s->file + at, s->file + at + sizeof(*h), h->size) == h->crc;
}

/* Could a block at `at` be the next after those known, given how much lies between? Data that was
 * copied and traced may hold blocks of some other trace.
 */
static bool
number_fits(const struct hed_trace_block_scan *s, size_t at, uint64_t number)
{
    const uint64_t most = (at - s->at) / sizeof(struct head) + 1;

    return number >= s->number && number - s->number <= most;
}

/* The next sound block after s->at, or the file's size. */
static size_t
search_block(struct hed_trace_block_scan *s)
{
    size_t at = s->at + 1;

    while (at < s->size && s->work > 0) {
        const uint8_t *p = memmem(s->file + at, s->size - at, HED_TRACE_BLOCK_MAGIC, MAGIC_SIZE);
        struct head h;

        if (!p)
            break;
        at = (size_t)(p - s->file);
        if (block_at(s, at, &h) && number_fits(s, at, h.number)) {
            s->work -= h.size < s->work ? h.size : s->work;
            if (sound_at(s, at, &h))
                return at;
        }
        at++;
    }
    return s->size;
}

/* Does the file merely stop inside a block, or in what the file system never filled? */
static bool
is_cut(const struct hed_trace_block_scan *s)
{
    const uint8_t *p = s->file + s->at;
    const size_t left = s->size - s->at;
    struct head h;

    if (left < sizeof(h) && memcmp(p, HED_TRACE_BLOCK_MAGIC, left < 4 ? left : 4) == 0)
        return true;
    if (block_at(s, s->at, &h) && h.size > left - sizeof(h))
        return true;
    for (size_t i = 0; i < left; i++) {
        if (p[i])
            return false;
    }
    return true;
}

/* Something is wrong at s->at: goes on to where it is right again. */
static void
skip_damage(struct hed_trace_block_scan *s)
{
    const size_t next = search_block(s);
    struct head h = {.number = s->number};

    if (next == s->size && is_cut(s)) {
        s->cut = s->size - s->at;
    } else {
        /* One block whose header is believable, or who knows what. */
        const bool one = block_at(s, s->at, &h) && h.size == next - s->at - sizeof(h);

        s->gap = true;
        s->gap_type = one ? h.type : 0;
        s->lost += next - s->at;
        if (next < s->size) {
            memcpy(&h, s->file + next, sizeof(h));
            s->bad += h.number > s->number ? h.number - s->number : 1;
        } else {
            s->bad++;
        }
    }
    s->at = next;
}

bool
hed_trace_block_next(struct hed_trace_block_scan *s, struct hed_trace_block *b)
{
    struct head h;

    s->gap = false;
    s->gap_type = 0;
    if (s->at < s->size && !sound_at(s, s->at, &h))
        skip_damage(s);
    if (s->at >= s->size || !block_at(s, s->at, &h))
        return false;
    *b = (struct hed_trace_block){
        .type = h.type,
        .size = h.size,
        .thread = h.thread,
        .number = h.number,
        .payload = s->file + s->at + sizeof(h),
    };
    s->at += sizeof(h) + h.size;
    s->number = h.number + 1;
    return true;
}
