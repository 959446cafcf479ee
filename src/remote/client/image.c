/* Selects the parts of an image that are sent. See code.h.
 *
 *   fat binary --one that the device runs---------------------------------> that entry
 *              \--a CPU GPU: all PTX-------------------------------------> those entries
 *              \--neither, but it was linked from parts (-rdc=true)------> struct hed_wire_linked
 *
 * NVIDIA's libraries have machine code for each device, and PTX for the newest only. A CPU GPU gets
 * both, and decides as it would on the program's machine (ADR 30).
 *
 * The parts are linked on the other side: by NVIDIA's driver, or by the soft driver of a CPU GPU,
 * which joins their PTX. A library such as libcudadevrt, which does not have PTX for every device,
 * is a part with machine code.
 */
#include "base/err.h"
#include "base/number.h"
#include "driver/driver.h"
#include "kernel/fatbin.h"
#include "remote/client/code.h"

/* ---- entries --------------------------------------------------------------------------------- */

/* Which entries of a fat binary to send. */
struct pick {
    enum {
        PICK_ONE,      /* the one at `offset` */
        PICK_PTX,      /* all PTX; and machine code at `offset`, unless that is 0 */
        PICK_LINKABLE, /* all except machine code that `device` does not run */
    } what;
    size_t offset;
    uint32_t device; /* 10 * major + minor */
};

static bool
is_picked(const struct pick *p, const struct hed_fatbin_entry *e)
{
    if (p->what == PICK_ONE)
        return e->offset == p->offset;
    if (!(e->flags & HED_FATBIN_64BIT))
        return false;
    if (p->what == PICK_PTX)
        return e->kind == HED_FATBIN_PTX || (p->offset && e->offset == p->offset);
    return e->kind != HED_FATBIN_CUBIN || hed_arch_runs(e->arch, p->device);
}

/* Appends a fat binary with the picked entries, byte for byte. Returns the bytes of the entries;
 * made->err says if something went wrong. */
static uint64_t
append_entries(struct hed_bytes fatbin, const struct pick *p, struct hed_buf *made)
{
    const size_t start = made->size;
    unsigned char header[HED_FATBIN_HEADER_SIZE] = {0};
    const uint32_t magic = HED_FATBIN_MAGIC;
    const uint16_t version = 1, self = sizeof header;
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;

    hed_buf_add(made, header, sizeof header);
    if (hed_fatbin_walk(fatbin, &w, NULL) == 0)
        while (hed_fatbin_next(&w, &e, NULL) > 0)
            if (is_picked(p, &e))
                hed_buf_add(made, fatbin.data + e.offset, w.at - e.offset);
    if (made->err)
        return 0;

    const uint64_t body = made->size - start - sizeof header;

    memcpy(made->data + start, &magic, sizeof magic);
    memcpy(made->data + start + 4, &version, sizeof version);
    memcpy(made->data + start + 6, &self, sizeof self);
    memcpy(made->data + start + 8, &body, sizeof body);
    return body;
}

/* A fat binary with the picked entries. HED_ENOTFOUND if there are none. */
static int
copy_entries(struct hed_bytes fatbin, const struct pick *p, struct hed_buf *made)
{
    hed_buf_reset(made);

    const uint64_t body = append_entries(fatbin, p, made);

    return made->err ? made->err : body ? 0 : HED_ENOTFOUND;
}

/* Only the text of an entry that a driver might misread (remote/server/worker/intact.h). */
static int
copy_entry_text(const struct hed_fatbin_entry *e, struct hed_buf *made)
{
    struct hed_arena arena;
    struct hed_bytes text;
    int err;

    hed_arena_init(&arena, HED_PROGRAM_MAX);
    hed_buf_reset(made);
    err = hed_fatbin_image(e, &arena, &text, NULL);
    if (err == 0) {
        text = hed_bytes_text(text);
        hed_buf_add(made, text.data, text.size);
        err = made->err;
    }
    hed_arena_fini(&arena);
    return err == HED_ENOMEM || err == 0 ? err : HED_ENOTFOUND;
}

static bool
find_sent(struct hed_bytes fatbin, uint32_t device, unsigned flags, struct hed_fatbin_entry *out)
{
    const struct hed_choose how = {.device = device, .flags = HED_CHOOSE_64BIT_ONLY | flags};

    return hed_fatbin_choose(fatbin, &how, out, NULL) == 0;
}

static int
copy_chosen(struct hed_bytes fatbin, uint32_t device, struct hed_buf *made)
{
    struct hed_fatbin_entry e;

    if (!find_sent(fatbin, device, 0, &e))
        return HED_ENOTFOUND;
    if (e.kind == HED_FATBIN_PTX && !e.has_options)
        return copy_entry_text(&e, made);
    return copy_entries(fatbin, &(struct pick){.what = PICK_ONE, .offset = e.offset}, made);
}

/* ---- linked programs ------------------------------------------------------------------------- */

static void
align_part(struct hed_buf *made)
{
    static const unsigned char zeros[HED_WIRE_LINKED_ALIGN];
    const size_t size = hed_round_up(made->size, HED_WIRE_LINKED_ALIGN);

    hed_buf_add(made, zeros, size - made->size);
}

static bool
has_picked(struct hed_bytes fatbin, const struct pick *p)
{
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;

    if (hed_fatbin_walk(fatbin, &w, NULL) == 0)
        while (hed_fatbin_next(&w, &e, NULL) > 0)
            if (is_picked(p, &e))
                return true;
    return false;
}

/* Appends the picked entries of a part. If there are none, all of it goes to NVIDIA's driver, which
 * then reports the error. Returns whether something was picked. */
static bool
append_part(const void *part, const struct pick *p, struct hed_buf *made)
{
    struct hed_image image;

    if (hed_image_at(part, &image, NULL) != 0 || image.kind != HED_IMAGE_FATBIN)
        image.bytes = (struct hed_bytes){NULL, 0};

    const bool picked = has_picked(image.bytes, p);

    if (picked || p->what != PICK_LINKABLE || !image.bytes.size)
        (void)append_entries(image.bytes, p, made);
    else
        hed_buf_add(made, image.bytes.data, image.bytes.size);
    return picked;
}

/* The linked fat binary and its parts. A CPU GPU needs nothing of the linked one. HED_ENOTFOUND if
 * no part has anything to send. */
static int
copy_linked(const struct hed_image *image, const struct pick *p, struct hed_buf *made)
{
    struct hed_wire_linked head = {.magic = HED_WIRE_LINKED_MAGIC, .count = 1};
    bool found = false;

    while (image->parts && image->parts[head.count - 1] && head.count < HED_WIRE_LINKED_MAX)
        head.count++;
    hed_buf_reset(made);
    hed_buf_add(made, &head, sizeof head);
    for (uint64_t i = 0; i < head.count; i++) /* the sizes are filled in below */
        hed_buf_add(made, &(uint64_t){0}, sizeof(uint64_t));
    for (uint32_t i = 0; i < head.count && !made->err; i++) {
        align_part(made);

        const size_t start = made->size;

        if (i > 0)
            found |= append_part(image->parts[i - 1], p, made);
        else if (p->what == PICK_LINKABLE)
            hed_buf_add(made, image->bytes.data, image->bytes.size);
        else
            (void)append_entries((struct hed_bytes){NULL, 0}, p, made);

        const uint64_t size = made->size - start;

        if (!made->err)
            memcpy(made->data + sizeof head + i * sizeof size, &size, sizeof size);
    }
    return made->err ? made->err : found ? 0 : HED_ENOTFOUND;
}

/* ---- whole images ---------------------------------------------------------------------------- */

/* For a CPU GPU. HED_ENOTFOUND: all of it must be sent. */
static int
copy_for_cpu(const struct hed_image *image, uint32_t device, struct hed_buf *made)
{
    struct pick pick = {.what = PICK_PTX, .device = device};
    struct hed_fatbin_entry e;
    int err = HED_ENOTFOUND;

    if (find_sent(image->bytes, device, HED_CHOOSE_PTX_ONLY, &e))
        return copy_entries(image->bytes, &pick, made);
    if (image->parts)
        err = copy_linked(image, &pick, made);
    if (err == HED_ENOTFOUND && find_sent(image->bytes, device, HED_CHOOSE_CUBIN_ONLY, &e)) {
        pick.offset = e.offset;
        err = copy_entries(image->bytes, &pick, made);
    }
    return err;
}

static int
copy_for_gpu(const struct hed_image *image, uint32_t device, struct hed_buf *made)
{
    const struct pick pick = {.what = PICK_LINKABLE, .device = device};
    const int err = copy_chosen(image->bytes, device, made);

    return err == HED_ENOTFOUND && image->parts ? copy_linked(image, &pick, made) : err;
}

int
hed_remote_pack(const struct hed_image *image, const struct hed_profile *profile, bool real,
                struct hed_buf *made, struct hed_bytes *out)
{
    const uint32_t device = (uint32_t)(10 * profile->major + profile->minor);
    int err;

    *out = image->bytes;
    if (image->kind != HED_IMAGE_FATBIN)
        return 0;
    err = real ? copy_for_gpu(image, device, made) : copy_for_cpu(image, device, made);
    if (err == HED_ENOTFOUND)
        return 0;
    *out = (struct hed_bytes){made->data, made->size};
    return err;
}

int
hed_remote_any(struct hed_bytes fatbin, enum hed_fatbin_kind kind, struct hed_arena *arena,
               struct hed_bytes *out)
{
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;

    if (hed_fatbin_walk(fatbin, &w, NULL) != 0)
        return HED_ENOTFOUND;
    while (hed_fatbin_next(&w, &e, NULL) > 0)
        if (e.kind == kind && e.flags & HED_FATBIN_64BIT)
            return hed_fatbin_image(&e, arena, out, NULL);
    return HED_ENOTFOUND;
}
