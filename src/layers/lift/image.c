/* Images that the device does not run, as PTX. See lift.h. */
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "kernel/fatbin.h"
#include "kernel/sass.h"
#include "layers/lift/lift.h"

#define IMAGE_MAX ((size_t)1 << 30) /* bytes of an image, unpacked, and of what is known about it */

/* 1 and the machine code to lift, 0 if the image can go on as it is, HED_E... if there is such code
 * and it cannot be had. */
static int
find_foreign_code(const struct hed_image *image, uint32_t device, struct hed_arena *arena,
                  struct hed_bytes *cubin, struct hed_why *why)
{
    const struct hed_choose native = {.device = device, .flags = HED_CHOOSE_64BIT_ONLY};
    const struct hed_choose any = {.device = device,
                                   .flags = HED_CHOOSE_64BIT_ONLY | HED_CHOOSE_CUBIN_ONLY,
                                   .takes_cubin = hed_sass_lifts};
    struct hed_fatbin_entry e;
    struct hed_arch arch;
    int err;

    switch (image->kind) {
    case HED_IMAGE_PTX:
        return 0;
    case HED_IMAGE_CUBIN:
        *cubin = image->bytes;
        return hed_cubin_arch(image->bytes, &arch, why) == 0 && !hed_arch_runs(arch, device) &&
               hed_sass_lifts(arch);
    case HED_IMAGE_FATBIN:
        if (hed_fatbin_choose(image->bytes, &native, &e, why) != HED_ENOTFOUND ||
            hed_fatbin_choose(image->bytes, &any, &e, why) != 0)
            return 0;
        err = hed_fatbin_image(&e, arena, cubin, why);
        return err ? err : 1;
    }
    return 0;
}

/* ---- names that were in the log -------------------------------------------------------------- */

#define NAMES_MAX 4096

static _Atomic uint64_t names[NAMES_MAX]; /* their hashes; 0: free */

/* Is a name new? A program may load an image for every context. If there are too many, all are. */
static bool
is_new_name(struct hed_bytes name)
{
    const uint64_t hash =
        (uint64_t)hed_str_hash((const char *)name.data, name.size) << 32 | (uint32_t)name.size | 1;

    for (size_t i = 0; i < NAMES_MAX; i++) {
        _Atomic uint64_t *at = &names[(hash + i) % NAMES_MAX];
        uint64_t there = 0;

        /* Relaxed: nothing else is ordered by it. */
        if (atomic_compare_exchange_strong_explicit(at, &there, hash, memory_order_relaxed,
                                                    memory_order_relaxed))
            return true;
        if (there == hash)
            return false;
    }
    return true;
}

/* ---- lifting --------------------------------------------------------------------------------- */

struct refusals {
    const struct hed_sass_program *program;
    uint32_t count;
};

static void
warn_of_kernel(void *arg, uint32_t kernel, const char *why)
{
    struct refusals *r = arg;
    const struct hed_bytes name = r->program->cubin.kernels[kernel].name;

    r->count++;
    if (is_new_name(name))
        hed_warn(CORE, "kernel %.*s cannot be lifted, so the program will not find it: %s",
                 (int)(name.size < 512 ? name.size : 512), (const char *)name.data, why);
}

static bool
lift_cubin(struct hed_bytes cubin, uint32_t device, struct hed_arena *arena, struct hed_buf *ptx,
           struct hed_why *why)
{
    const uint64_t begin = hed_now_ns();
    struct refusals r = {NULL, 0};
    struct hed_sass_program *p;
    char arch[HED_ARCH_TEXT];

    if (hed_sass_open(cubin, arena, &p, why) != 0)
        return false;
    if (!p->cubin.linked) {
        hed_why_set(why, "it must be linked with others first");
        return false;
    }
    r.program = p;
    if (hed_sass_lift_module(p, warn_of_kernel, &r, ptx, why) != 0)
        return false;
    hed_info(CORE,
             "machine code for %s is lifted for a device of sm_%u: %u of %u kernels, %zu bytes of "
             "PTX, %" PRIu64 " ms",
             hed_arch_text(p->cubin.arch, "sm_", arch), device, p->cubin.kernel_count - r.count,
             p->cubin.kernel_count, ptx->size, (hed_now_ns() - begin) / HED_NS_PER_MS);
    return true;
}

static bool
relift(const struct hed_image *image, uint32_t device, struct hed_buf *ptx)
{
    struct hed_bytes cubin;
    struct hed_why why = {""};
    struct hed_arena arena;
    bool lifted = false;

    if (device < HED_SASS_PTX_ARCH)
        return false;
    hed_arena_init(&arena, IMAGE_MAX);

    const int found = find_foreign_code(image, device, &arena, &cubin, &why);

    if (found > 0)
        lifted = lift_cubin(cubin, device, &arena, ptx, &why);
    if (found != 0 && !lifted)
        hed_warn(CORE, "an image has nothing for sm_%u, and cannot be lifted: %s", device,
                 why.text[0] ? why.text : "its contents make no sense");
    hed_arena_fini(&arena);
    return lifted;
}

bool
hed_relift_memory(const void *p, uint32_t device, struct hed_buf *ptx)
{
    struct hed_image image;
    struct hed_why why;

    return hed_image_at(p, &image, &why) == 0 && relift(&image, device, ptx);
}

bool
hed_relift_bytes(struct hed_bytes b, uint32_t device, struct hed_buf *ptx)
{
    struct hed_image image;
    struct hed_why why;

    return hed_image_in(b, &image, &why) == 0 && relift(&image, device, ptx);
}

bool
hed_relift_file(const char *path, uint32_t device, struct hed_buf *ptx)
{
    struct hed_bytes file;
    struct hed_why why;
    bool lifted;

    if (!path || hed_fatbin_map(path, &file, &why) != 0)
        return false;
    lifted = hed_relift_bytes(file, device, ptx);
    hed_fatbin_unmap(file);
    return lifted;
}
