/* heddle fatbin list: the images of files, one per line, and their kernels. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/fatbin/fatbin.h"
#include "kernel/fatbin.h"

#define LINE_MAX_BYTES ((size_t)256 << 20) /* of JSON: an image with all its kernels */

static const char usage[] =
    "usage: heddle fatbin list FILE... [OPTION...]\n"
    "\n"
    "Lists the images of GPU code in each file, one per line: kind, architecture,\n"
    "bytes of code, bytes in the file, compression, section, ptxas options, source.\n"
    "\n"
    "  --kind KIND    only images of this kind: ptx, cubin, lto, or a number\n"
    "  --arch ARCH    only images for sm_90, sm_90a, compute_90, ...; 90: of any kind\n"
    "  --entry N      only image number N\n"
    "  --kernels      also list the kernels of each image, with their parameters (as\n"
    "                 size@offset) and resources\n"
    "  --sections     search only the sections where compilers put GPU code\n"
    "  --json         print one JSON object per line\n"
    "  -h, --help     show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if there is no GPU code or a file is damaged,\n"
    "2 if an option is wrong.\n";

static const struct hed_cli_opt options[] = {
    {"kind", true},      {"arch", true},  {"entry", true}, {"kernels", false},
    {"sections", false}, {"json", false}, {"help", false}, {NULL, false},
};

struct list {
    struct hed_asked asked;
    bool begun; /* the heading of the current file's table has been printed */
    bool several;
    int code;
    struct hed_arena arena;
    struct hed_buf buf;
};

static const char *
host_text(uint64_t flags)
{
    return flags & HED_FATBIN_LINUX     ? "linux"
           : flags & HED_FATBIN_WINDOWS ? "windows"
           : flags & HED_FATBIN_MAC     ? "mac"
                                        : "";
}

/* ---- kernels --------------------------------------------------------------------------------- */

static bool
is_set(const uint32_t v[3])
{
    return v[0] || v[1] || v[2];
}

static void
text_kernel(const struct hed_cubin_kernel *k)
{
    fputs("        ", stdout);
    hed_cli_fatbin_print(stdout, k->name);
    putchar('(');
    for (uint32_t i = 0; i < k->param_count; i++)
        printf("%s%u@%u", i ? ", " : "", k->params[i].size, k->params[i].offset);
    printf(")  %u registers", k->registers);
    if (k->shared)
        printf(", %" PRIu64 " shared", k->shared);
    if (k->stack || k->local)
        printf(", %" PRIu64 " local", k->stack + k->local);
    if (is_set(k->max_threads))
        printf(", at most %ux%ux%u threads", k->max_threads[0], k->max_threads[1],
               k->max_threads[2]);
    if (is_set(k->required_threads))
        printf(", exactly %ux%ux%u threads", k->required_threads[0], k->required_threads[1],
               k->required_threads[2]);
    if (is_set(k->cluster))
        printf(", clusters of %ux%ux%u", k->cluster[0], k->cluster[1], k->cluster[2]);
    putchar('\n');
}

static void
json_triple(struct hed_buf *b, const char *key, const uint32_t v[3])
{
    if (is_set(v))
        hed_buf_addf(b, ",\"%s\":[%u,%u,%u]", key, v[0], v[1], v[2]);
}

static void
json_kernel(struct hed_buf *b, const struct hed_cubin_kernel *k)
{
    hed_buf_addf(b, "{");
    hed_cli_fatbin_json(b, "name", k->name);
    hed_buf_addf(b, ",\"params\":[");
    for (uint32_t i = 0; i < k->param_count; i++)
        hed_buf_addf(b, "%s{\"offset\":%u,\"size\":%u}", i ? "," : "", k->params[i].offset,
                     k->params[i].size);
    hed_buf_addf(b, "],\"param_bytes\":%u,\"param_bank_offset\":%u,\"registers\":%u",
                 k->param_bytes, k->param_bank, k->registers);
    hed_buf_addf(b, ",\"shared\":%" PRIu64 ",\"shared_reserved\":%" PRIu64, k->shared, k->reserved);
    hed_buf_addf(b, ",\"local\":%" PRIu64 ",\"stack\":%u,\"constant0\":%" PRIu64, k->local,
                 k->stack, k->constant);
    hed_buf_addf(b, ",\"code\":%" PRIu64 ",\"barriers\":%u", k->code, k->barriers);
    if (k->max_registers)
        hed_buf_addf(b, ",\"max_registers\":%u", k->max_registers);
    if (k->max_cluster)
        hed_buf_addf(b, ",\"max_cluster\":%u", k->max_cluster);
    json_triple(b, "max_threads", k->max_threads);
    json_triple(b, "required_threads", k->required_threads);
    json_triple(b, "cluster", k->cluster);
    hed_buf_addf(b, "}");
}

static void
show_ptx(struct list *l, struct hed_bytes text)
{
    struct hed_bytes name;
    const char *between = "";

    for (size_t at = 0; (name = hed_ptx_next_entry(text, &at)).size; between = ",") {
        if (l->asked.json) {
            hed_buf_addf(&l->buf, "%s{", between);
            hed_cli_fatbin_json(&l->buf, "name", name);
            hed_buf_addf(&l->buf, "}");
        } else {
            fputs("        ", stdout);
            hed_cli_fatbin_print(stdout, name);
            putchar('\n');
        }
    }
}

/* Shows the kernels of an image. 0 or HED_E..., with the reason. */
static int
show_kernels(struct list *l, const struct hed_fatbin_entry *e, struct hed_why *why)
{
    struct hed_bytes image;
    struct hed_cubin c;
    int err;

    hed_arena_reset(&l->arena);
    err = hed_fatbin_image(e, &l->arena, &image, why);
    if (err == 0 && e->kind == HED_FATBIN_PTX)
        show_ptx(l, image);
    if (err == 0 && e->kind == HED_FATBIN_CUBIN) {
        err = hed_cubin_read(image, &l->arena, &c, why);
        for (uint32_t i = 0; err == 0 && i < c.kernel_count; i++) {
            if (l->asked.json && i)
                hed_buf_addf(&l->buf, ",");
            if (l->asked.json)
                json_kernel(&l->buf, &c.kernels[i]);
            else
                text_kernel(&c.kernels[i]);
        }
    }
    return err;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Prints text without the blanks around it. */
static void
text_trimmed(struct hed_bytes text)
{
    while (text.size && text.data[0] == ' ')
        text = hed_bytes_from(text, 1);
    while (text.size && text.data[text.size - 1] == ' ')
        text.size--;
    if (text.size)
        fputs("  ", stdout);
    hed_cli_fatbin_print(stdout, text);
}

static void
text_image(struct list *l, const struct hed_cli_image *m)
{
    const struct hed_fatbin_entry *e = &m->entry;
    const struct hed_bytes *where = m->found->member.size ? &m->found->member : &m->found->section;
    char kind[16], arch[HED_ARCH_TEXT];

    if (!l->begun) {
        if (l->several)
            printf("%s:\n", m->path);
        printf("%6s  %-6s %-12s %10s %10s  %-6s  %s\n", "ENTRY", "KIND", "ARCH", "SIZE", "STORED",
               "PACKED", "WHERE, OPTIONS, SOURCE");
        l->begun = true;
    }
    printf("%6" PRIu64 "  %-6s %-12s %10" PRIu64 " %10zu  %-6s  ", m->number,
           hed_cli_fatbin_kind_text(e->kind, kind), hed_fatbin_arch_text(e, arch), e->size,
           e->stored.size, e->packing ? hed_fatbin_packing_name(e->packing) : "-");
    if (where->size)
        hed_cli_fatbin_print(stdout, *where);
    else
        putchar('-');
    if (e->flags & HED_FATBIN_DEBUG)
        fputs("  debug", stdout);
    text_trimmed(e->options);
    text_trimmed(e->name);
    putchar('\n');
}

static void
json_image(struct hed_buf *b, const struct hed_cli_image *m)
{
    const struct hed_fatbin_entry *e = &m->entry;
    char kind[16], arch[HED_ARCH_TEXT];

    hed_buf_addf(b, "{");
    hed_cli_fatbin_json_text(b, "file", m->path);
    hed_buf_addf(b, ",\"entry\":%" PRIu64 ",\"fatbin\":%" PRIu64 ",", m->number, m->fatbin);
    hed_cli_fatbin_json_text(b, "kind", hed_cli_fatbin_kind_text(e->kind, kind));
    hed_buf_addf(b, ",");
    hed_cli_fatbin_json_text(b, "arch", hed_fatbin_arch_text(e, arch));
    hed_buf_addf(b, ",\"version\":\"%u.%u\",\"size\":%" PRIu64 ",\"stored\":%zu,", e->major,
                 e->minor, e->size, e->stored.size);
    hed_cli_fatbin_json_text(b, "compression", hed_fatbin_packing_name(e->packing));
    hed_buf_addf(b, ",\"offset\":%" PRIu64 ",", m->found->offset + e->offset);
    hed_cli_fatbin_json(b, "section", m->found->section);
    hed_buf_addf(b, ",");
    hed_cli_fatbin_json(b, "member", m->found->member);
    hed_buf_addf(b, ",\"relocatable\":%s,\"bits\":%u,\"debug\":%s,",
                 m->found->relocatable ? "true" : "false", e->flags & HED_FATBIN_64BIT ? 64 : 32,
                 e->flags & HED_FATBIN_DEBUG ? "true" : "false");
    hed_cli_fatbin_json_text(b, "host", host_text(e->flags));
    hed_buf_addf(b, ",\"flags\":%" PRIu64 ",", e->flags);
    hed_cli_fatbin_json(b, "options", e->options);
    hed_buf_addf(b, ",");
    hed_cli_fatbin_json(b, "source", e->name);
}

static bool
has_kernels(uint16_t kind)
{
    return kind == HED_FATBIN_PTX || kind == HED_FATBIN_CUBIN;
}

static bool
show_image(void *arg, const struct hed_cli_image *m)
{
    struct list *l = arg;
    struct hed_why why;
    int err = 0;

    if (!l->asked.json)
        text_image(l, m);
    if (l->asked.json) {
        hed_buf_reset(&l->buf);
        json_image(&l->buf, m);
    }
    if (l->asked.kernels && has_kernels(m->entry.kind)) {
        if (l->asked.json)
            hed_buf_addf(&l->buf, ",\"kernels\":[");
        err = show_kernels(l, &m->entry, &why);
        if (l->asked.json)
            hed_buf_addf(&l->buf, "]");
        if (err != 0) {
            hed_cli_say("%s: entry %" PRIu64 " %s", m->path, m->number, why.text);
            l->code = HED_EXIT_FAILED;
        }
    }
    if (l->asked.json) {
        hed_buf_addf(&l->buf, "}");
        if (l->buf.err) {
            hed_cli_say("%s: entry %" PRIu64 ": %s", m->path, m->number, hed_err_text(l->buf.err));
            return false;
        }
        puts(hed_buf_cstr(&l->buf));
    }
    return true;
}

static void
list_file(struct list *l, const char *path)
{
    l->begun = false;

    const struct hed_cli_visit v = hed_cli_fatbin_visit(path, &l->asked.select, show_image, l);

    if (v.code != HED_EXIT_OK) {
        l->code = v.code;
    } else if (v.selected == 0) {
        hed_cli_say(v.images ? "%s: none of its %" PRIu64 " images matches"
                             : "%s: no GPU code found",
                    path, v.images);
        l->code = HED_EXIT_FAILED;
    }
}

int
hed_cli_fatbin_list(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct list l = {.code = HED_EXIT_OK};

    o.command = "fatbin list";

    const int count = hed_cli_fatbin_words(&o, usage, &l.asked, argv);

    if (count < 0)
        return -1 - count;
    if (count == 0) {
        hed_cli_say("fatbin list: no file given; see heddle fatbin list --help");
        return HED_EXIT_USAGE;
    }
    hed_arena_init(&l.arena, HED_CLI_IMAGE_MAX);
    hed_buf_init(&l.buf, LINE_MAX_BYTES);
    l.several = count > 1;
    for (int i = 0; i < count; i++)
        list_file(&l, argv[i]);
    hed_arena_fini(&l.arena);
    hed_buf_fini(&l.buf);
    return l.code;
}
