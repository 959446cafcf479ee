/* heddle fatbin info: one page about a file. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/fatbin/fatbin.h"
#include "kernel/fatbin.h"

#define ROWS_MAX 256                        /* kinds and architectures; more are only counted */
#define COUNT_UNASKED (UINT64_C(256) << 20) /* bytes of code whose kernels are counted unasked */
#define LINE_MAX_BYTES (1u << 20)

static const char usage[] =
    "usage: heddle fatbin info FILE... [OPTION...]\n"
    "\n"
    "Summarizes each file on one page: its images by kind and architecture, their\n"
    "sizes, their kernels, and whether there is PTX that a later GPU could compile.\n"
    "\n"
    "  --kernels     count kernels in large files, too, which takes longer\n"
    "  --sections    search only the sections where compilers put GPU code\n"
    "  --json        print one JSON object per file, one per line\n"
    "  -h, --help    show this help\n"
    "\n"
    "The exit code is 0 on success, also if there is no GPU code, 1 if a file is\n"
    "damaged, 2 if an option is wrong.\n";

static const struct hed_cli_opt options[] = {
    {"kernels", false}, {"sections", false}, {"json", false}, {"help", false}, {NULL, false},
};

struct row {
    struct hed_fatbin_entry like; /* an image of this kind and architecture */
    uint64_t images;
    uint64_t size;    /* bytes unpacked */
    uint64_t stored;  /* bytes in the file */
    uint64_t kernels; /* of all these images */
    uint64_t most;    /* kernels of the image that has most */
};

struct info {
    struct hed_asked asked;
    int code;
    struct row rows[ROWS_MAX];
    size_t count;
    uint64_t not_counted; /* images for which there was no row */
    uint64_t relocatable; /* images */
    uint64_t packed[HED_PACKING_UNKNOWN + 1];
    uint64_t unreadable; /* images whose kernels could not be counted */
    struct hed_arena arena;
};

static struct row *
find_row(struct info *x, const struct hed_fatbin_entry *e)
{
    for (size_t i = 0; i < x->count; i++) {
        const struct hed_fatbin_entry *r = &x->rows[i].like;

        if (r->kind == e->kind && r->arch.number == e->arch.number &&
            r->arch.suffix == e->arch.suffix)
            return &x->rows[i];
    }
    if (x->count == ROWS_MAX)
        return NULL;
    x->rows[x->count] = (struct row){.like = *e};
    return &x->rows[x->count++];
}

static bool
count_image(void *arg, const struct hed_cli_image *m)
{
    struct info *x = arg;
    struct row *r = find_row(x, &m->entry);

    x->relocatable += m->found->relocatable;
    x->packed[m->entry.packing]++;
    if (!r) {
        x->not_counted++;
        return true;
    }
    r->images++;
    r->size += m->entry.size;
    r->stored += m->entry.stored.size;
    return true;
}

static bool
count_kernels(void *arg, const struct hed_cli_image *m)
{
    struct info *x = arg;
    const struct hed_fatbin_entry *e = &m->entry;
    struct row *r = find_row(x, e);
    struct hed_bytes image;
    struct hed_cubin c;
    uint64_t n = 0;

    if (!r || (e->kind != HED_FATBIN_PTX && e->kind != HED_FATBIN_CUBIN))
        return true;
    hed_arena_reset(&x->arena);
    if (hed_fatbin_image(e, &x->arena, &image, NULL) != 0) {
        x->unreadable++;
    } else if (e->kind == HED_FATBIN_PTX) {
        for (size_t at = 0; hed_ptx_next_entry(image, &at).size;)
            n++;
    } else if (hed_cubin_read(image, &x->arena, &c, NULL) == 0) {
        n = c.kernel_count;
    } else {
        x->unreadable++;
    }
    r->kernels += n;
    if (n > r->most)
        r->most = n;
    return true;
}

/* Sorts by kind, then by architecture. There are only a few rows. */
static void
sort_rows(struct info *x)
{
    for (size_t i = 1; i < x->count; i++) {
        for (size_t j = i; j > 0; j--) {
            const struct hed_fatbin_entry *a = &x->rows[j - 1].like;
            const struct hed_fatbin_entry *b = &x->rows[j].like;
            const uint64_t ka = (uint64_t)a->kind << 48 | (uint64_t)a->arch.number << 8;
            const uint64_t kb = (uint64_t)b->kind << 48 | (uint64_t)b->arch.number << 8;

            if ((ka | (uint8_t)a->arch.suffix) <= (kb | (uint8_t)b->arch.suffix))
                break;

            const struct row t = x->rows[j];

            x->rows[j] = x->rows[j - 1];
            x->rows[j - 1] = t;
        }
    }
}

/* The oldest PTX that is not tied to an architecture: every later GPU can compile it. */
static const struct row *
jit_row(const struct info *x)
{
    for (size_t i = 0; i < x->count; i++) {
        if (x->rows[i].like.kind == HED_FATBIN_PTX && !x->rows[i].like.arch.suffix)
            return &x->rows[i];
    }
    return NULL;
}

static void
text_rows(const struct info *x, bool counted)
{
    char kind[16], arch[HED_ARCH_TEXT];

    printf("\n  %-7s %-12s %7s %12s %12s", "KIND", "ARCH", "IMAGES", "SIZE", "STORED");
    puts(counted ? "  KERNELS  (MOST IN ONE)" : "");
    for (size_t i = 0; i < x->count; i++) {
        const struct row *r = &x->rows[i];

        printf("  %-7s %-12s %7" PRIu64 " %12" PRIu64 " %12" PRIu64,
               hed_cli_fatbin_kind_text(r->like.kind, kind), hed_fatbin_arch_text(&r->like, arch),
               r->images, r->size, r->stored);
        if (counted && (r->like.kind == HED_FATBIN_PTX || r->like.kind == HED_FATBIN_CUBIN))
            printf("  %7" PRIu64 "  (%" PRIu64 ")", r->kernels, r->most);
        putchar('\n');
    }
    if (x->not_counted)
        printf("  and %" PRIu64 " images of other kinds and architectures\n", x->not_counted);
    putchar('\n');
}

static void
text_notes(const struct info *x, const struct hed_cli_visit *v, bool counted)
{
    const struct row *jit = jit_row(x);
    char arch[HED_ARCH_TEXT];

    if (v->wrappers[1] + v->wrappers[2] + v->wrappers[0])
        printf("  wrappers     %" PRIu64 " plain, %" PRIu64 " of device linking\n", v->wrappers[1],
               v->wrappers[2]);
    if (x->relocatable)
        printf("  relocatable  %" PRIu64 " images are parts for device linking\n", x->relocatable);
    printf("  compression  %" PRIu64 " none, %" PRIu64 " LZ4, %" PRIu64 " zstd",
           x->packed[HED_PACKING_NONE], x->packed[HED_PACKING_LZ4], x->packed[HED_PACKING_ZSTD]);
    if (x->packed[HED_PACKING_SEALED])
        printf(", %" PRIu64 " sealed", x->packed[HED_PACKING_SEALED]);
    if (x->packed[HED_PACKING_UNKNOWN])
        printf(", %" PRIu64 " unknown", x->packed[HED_PACKING_UNKNOWN]);
    putchar('\n');
    for (int p = HED_PACKING_LZ4; p <= HED_PACKING_ZSTD; p++) {
        if (x->packed[p] && !hed_fatbin_can_unpack((enum hed_fatbin_packing)p))
            printf("               %s needs %s support, which this heddle was built without\n",
                   "unpacking", hed_fatbin_packing_name((enum hed_fatbin_packing)p));
    }
    if (!counted)
        puts("  kernels      not counted in so much code; --kernels counts them");
    else if (x->unreadable)
        printf("  kernels      %" PRIu64 " images could not be read\n", x->unreadable);
    if (jit)
        printf("  JIT          possible, from PTX for %s\n",
               hed_fatbin_arch_text(&jit->like, arch));
    else
        puts("  JIT          impossible: no PTX that a later GPU could compile");
}

static void
print_page(const struct info *x, const char *path, const struct hed_cli_visit *v, bool counted)
{
    printf("%s: %zu bytes, ", path, v->bytes.size);
    if (v->images == 0) {
        puts("no GPU code found");
        return;
    }
    printf("%" PRIu64 " fat binar%s, %" PRIu64 " image%s\n", v->fatbins,
           v->fatbins == 1 ? "y" : "ies", v->images, v->images == 1 ? "" : "s");
    text_rows(x, counted);
    text_notes(x, v, counted);
}

static void
json_rows(struct hed_buf *b, const struct info *x, bool counted)
{
    char kind[16], arch[HED_ARCH_TEXT];

    for (size_t i = 0; i < x->count; i++) {
        const struct row *r = &x->rows[i];

        hed_buf_addf(b, "%s{", i ? "," : "");
        hed_cli_fatbin_json_text(b, "kind", hed_cli_fatbin_kind_text(r->like.kind, kind));
        hed_buf_addf(b, ",");
        hed_cli_fatbin_json_text(b, "arch", hed_fatbin_arch_text(&r->like, arch));
        hed_buf_addf(b, ",\"images\":%" PRIu64 ",\"size\":%" PRIu64 ",\"stored\":%" PRIu64,
                     r->images, r->size, r->stored);
        if (counted)
            hed_buf_addf(b, ",\"kernels\":%" PRIu64 ",\"most_kernels\":%" PRIu64, r->kernels,
                         r->most);
        hed_buf_addf(b, "}");
    }
}

static void
print_page_json(const struct info *x, const char *path, const struct hed_cli_visit *v, bool counted)
{
    const struct row *jit = jit_row(x);
    char arch[HED_ARCH_TEXT];
    struct hed_buf b;

    hed_buf_init(&b, LINE_MAX_BYTES);
    hed_buf_addf(&b, "{");
    hed_cli_fatbin_json_text(&b, "file", path);
    hed_buf_addf(&b, ",\"bytes\":%zu,\"fatbins\":%" PRIu64 ",\"images\":%" PRIu64, v->bytes.size,
                 v->fatbins, v->images);
    hed_buf_addf(&b, ",\"wrappers\":{\"v1\":%" PRIu64 ",\"v2\":%" PRIu64 ",\"other\":%" PRIu64 "}",
                 v->wrappers[1], v->wrappers[2], v->wrappers[0]);
    hed_buf_addf(&b, ",\"relocatable\":%" PRIu64 ",\"compression\":{", x->relocatable);
    for (int i = 0; i <= HED_PACKING_UNKNOWN; i++)
        hed_buf_addf(&b, "%s\"%s\":%" PRIu64, i ? "," : "",
                     hed_fatbin_packing_name((enum hed_fatbin_packing)i), x->packed[i]);
    hed_buf_addf(&b, "},\"by_arch\":[");
    json_rows(&b, x, counted);
    hed_buf_addf(&b, "],\"kernels_counted\":%s,", counted && !x->unreadable ? "true" : "false");
    hed_cli_fatbin_json_text(&b, "jit_from", jit ? hed_fatbin_arch_text(&jit->like, arch) : "");
    hed_buf_addf(&b, "}");
    puts(hed_buf_cstr(&b));
    hed_buf_fini(&b);
}

static void
show_page(struct info *x, const char *path)
{
    uint64_t code = 0;

    x->count = 0;
    x->not_counted = x->relocatable = x->unreadable = 0;
    memset(x->packed, 0, sizeof x->packed);

    const struct hed_cli_visit v = hed_cli_fatbin_visit(path, &x->asked.select, count_image, x);

    if (v.code != HED_EXIT_OK)
        x->code = v.code;
    /* What was found before the damage is still shown. */
    if (v.code != HED_EXIT_OK && v.images == 0)
        return;
    sort_rows(x);
    for (size_t i = 0; i < x->count; i++)
        code += x->rows[i].size;

    const bool counted = x->asked.kernels || code <= COUNT_UNASKED;

    /* Damage has been reported already. */
    if (counted && v.code == HED_EXIT_OK)
        hed_cli_fatbin_visit(path, &x->asked.select, count_kernels, x);
    if (x->asked.json)
        print_page_json(x, path, &v, counted && v.code == HED_EXIT_OK);
    else
        print_page(x, path, &v, counted && v.code == HED_EXIT_OK);
}

int
hed_cli_fatbin_info(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    static struct info x; /* large */

    o.command = "fatbin info";

    const int count = hed_cli_fatbin_words(&o, usage, &x.asked, argv);

    if (count < 0)
        return -1 - count;
    if (count == 0) {
        hed_cli_say("fatbin info: no file given; see heddle fatbin info --help");
        return HED_EXIT_USAGE;
    }
    hed_arena_init(&x.arena, HED_CLI_IMAGE_MAX);
    for (int i = 0; i < count; i++)
        show_page(&x, argv[i]);
    hed_arena_fini(&x.arena);
    return x.code;
}
