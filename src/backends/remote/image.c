/* What of an image is sent. See code.h. */
#include "driver/module/image.h"
#include "backends/remote/code.h"
#include "base/err.h"
#include "fatbin/fatbin.h"

/* Is this an entry to send? */
struct pick {
    bool all_ptx;
    size_t offset; /* else: the one that is here */
};

static bool
is_picked(const struct pick *p, const struct hed_fatbin_entry *e)
{
    if (p->all_ptx)
        return e->kind == HED_FATBIN_PTX && e->flags & HED_FATBIN_64BIT;
    return e->offset == p->offset;
}

/* A fat binary of the picked entries, byte for byte as they are. HED_ENOTFOUND: there are none. */
static int
copy_entries(struct hed_bytes fatbin, const struct pick *p, struct hed_buf *made)
{
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    unsigned char header[HED_FATBIN_HEADER_SIZE] = {0};
    const uint32_t magic = HED_FATBIN_MAGIC;
    const uint16_t version = 1, self = sizeof header;

    hed_buf_reset(made);
    hed_buf_add(made, header, sizeof header);
    if (hed_fatbin_walk(fatbin, &w, NULL) != 0)
        return HED_ENOTFOUND;
    while (hed_fatbin_next(&w, &e, NULL) > 0)
        if (is_picked(p, &e))
            hed_buf_add(made, fatbin.data + e.offset, w.at - e.offset);
    if (made->err)
        return made->err;

    const uint64_t body = made->size - sizeof header;

    memcpy(made->data, &magic, sizeof magic);
    memcpy(made->data + 4, &version, sizeof version);
    memcpy(made->data + 6, &self, sizeof self);
    memcpy(made->data + 8, &body, sizeof body);
    return body ? 0 : HED_ENOTFOUND;
}

/* The text alone, of an entry that a driver could stumble over (server/worker/intact.h). */
static int
copy_text(const struct hed_fatbin_entry *e, struct hed_buf *made)
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

static int
copy_chosen(struct hed_bytes fatbin, uint32_t device, unsigned flags, struct hed_buf *made)
{
    const struct hed_choose how = {.device = device, .flags = HED_CHOOSE_64BIT_ONLY | flags};
    struct hed_fatbin_entry e;

    if (hed_fatbin_choose(fatbin, &how, &e, NULL) != 0)
        return HED_ENOTFOUND;
    if (e.kind == HED_FATBIN_PTX && !e.has_options)
        return copy_text(&e, made);
    return copy_entries(fatbin, &(struct pick){.offset = e.offset}, made);
}

/* A linked program's PTX is in its parts. */
static int
join(const struct hed_image *image, const struct hed_profile *profile, struct hed_buf *made)
{
    struct hed_arena arena;
    struct hed_why why = {""};
    uint32_t arch;

    if (!image->parts)
        return HED_ENOTFOUND;
    hed_arena_init(&arena, HED_PROGRAM_MAX);
    hed_buf_reset(made);

    const CUresult r = hed_image_join(profile, image->parts, &arena, made, &arch, &why);

    hed_arena_fini(&arena);
    return r == CUDA_SUCCESS ? 0 : r == CUDA_ERROR_OUT_OF_MEMORY ? HED_ENOMEM : HED_ENOTFOUND;
}

int
hed_remote_pack(const struct hed_image *image, const struct hed_profile *profile, bool real,
                struct hed_buf *made, struct hed_bytes *out)
{
    const uint32_t device = (uint32_t)(10 * profile->major + profile->minor);
    int err = HED_ENOTFOUND;

    *out = image->bytes;
    if (image->kind != HED_IMAGE_FATBIN)
        return 0;
    if (real) {
        err = copy_chosen(image->bytes, device, 0, made);
    } else {
        err = copy_entries(image->bytes, &(struct pick){.all_ptx = true}, made);
        if (err == HED_ENOTFOUND)
            err = join(image, profile, made);
        if (err == HED_ENOTFOUND)
            err = copy_chosen(image->bytes, device, HED_CHOOSE_CUBIN_ONLY, made);
    }
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
