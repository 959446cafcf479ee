/* Linked programs with their parts. See linked.h. */
#include "remote/server/worker/linked.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kernel/fatbin.h"
#include "remote/server/worker/intact.h"
#include "remote/wire/code.h"

static bool
read_linked_head(const void *image, uint64_t size, struct hed_wire_linked *head)
{
    if (size < sizeof *head)
        return false;
    memcpy(head, image, sizeof *head);
    return head->magic == HED_WIRE_LINKED_MAGIC;
}

static uint64_t
linked_part_size(const void *image, uint32_t i)
{
    uint64_t size;

    memcpy(&size, (const uint8_t *)image + sizeof(struct hed_wire_linked) + i * sizeof size,
           sizeof size);
    return size;
}

bool
hed_linked_begins(const void *image, uint64_t size)
{
    struct hed_wire_linked head;

    return read_linked_head(image, size, &head);
}

bool
hed_linked_at(const void *image, uint64_t size, uint32_t i, struct hed_bytes *out)
{
    struct hed_wire_linked head;
    uint64_t at;

    if (!read_linked_head(image, size, &head) || i >= head.count ||
        head.count > HED_WIRE_LINKED_MAX || head.count > (size - sizeof head) / sizeof(uint64_t))
        return false;
    at = sizeof head + head.count * sizeof(uint64_t);
    for (uint32_t k = 0;; k++) {
        const uint64_t here = linked_part_size(image, k);

        at = hed_round_up(at, HED_WIRE_LINKED_ALIGN);
        if (at > size || here > size - at)
            return false;
        if (k == i) {
            *out = (struct hed_bytes){(const uint8_t *)image + at, (size_t)here};
            return true;
        }
        at += here;
    }
}

bool
hed_linked_is_intact(const void *image, uint64_t size, bool strict)
{
    struct hed_wire_linked head;
    struct hed_bytes part;
    uint64_t said;

    if (!read_linked_head(image, size, &head) || head.count == 0)
        return false;
    for (uint32_t i = 0; i < head.count; i++)
        if (!hed_linked_at(image, size, i, &part) || !hed_fatbin_begins(part, &said) ||
            !hed_image_is_intact(part.data, part.size, strict))
            return false;
    return true;
}

void *
hed_linked_wrap(const void *image, uint64_t size)
{
    struct hed_wire_linked head;
    struct hed_fatbin_wrapper *w = NULL;
    struct hed_bytes part;

    if (read_linked_head(image, size, &head))
        w = calloc(1, sizeof *w + ((size_t)head.count + 1) * sizeof part.data);
    if (!w)
        return NULL;

    const void **parts = (const void **)(w + 1); /* the last one stays NULL */

    *w = (struct hed_fatbin_wrapper){
        .magic = HED_FATBIN_WRAPPER_MAGIC, .version = 2, .parts = parts};
    for (uint32_t i = 0; i < head.count && hed_linked_at(image, size, i, &part); i++) {
        if (i == 0)
            w->data = part.data;
        else
            parts[i - 1] = part.data;
    }
    return w;
}
