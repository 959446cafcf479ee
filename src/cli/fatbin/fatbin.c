/* heddle fatbin: the table of its subcommands, and what they share. */
#include "cli/fatbin/fatbin.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/group.h"
#include "kernel/fatbin.h"

static const struct hed_cli_group group = {
    .name = "fatbin",
    .head = "usage: heddle fatbin COMMAND FILE... [OPTION...]\n\n"
            "Finds the GPU code in programs, libraries, object files, archives, fat binaries,\n"
            "cubins and PTX files. Needs neither a GPU nor NVIDIA's tools.\n\n",
    .tail = "\n"
            "  heddle fatbin list ./app\n"
            "  heddle fatbin list --kernels --arch sm_90 libfoo.so\n"
            "  heddle fatbin extract --kind ptx -o out ./app\n"
            "\n"
            "`heddle fatbin COMMAND --help` explains each command.\n",
    .commands =
        {
            {"list", hed_cli_fatbin_list, "list the images, one per line"},
            {"extract", hed_cli_fatbin_extract, "write images to files, unpacked"},
            {"info", hed_cli_fatbin_info, "summarize a file on one page"},
            {"disasm", hed_cli_fatbin_disasm, "print the machine code of kernels"},
            {"lift", hed_cli_fatbin_lift, "print the machine code of kernels as PTX"},
        },
};

int
hed_cli_fatbin(int argc, char **argv)
{
    return hed_cli_group(&group, argc, argv, NULL);
}

/* ---- visiting -------------------------------------------------------------------------------- */

struct visitor {
    const struct hed_cli_select *select;
    hed_cli_image_fn fn;
    void *arg;
    struct hed_cli_visit v;
    struct hed_cli_image image;
    bool stopped;
};

static bool
is_selected(const struct hed_cli_image *image, const struct hed_cli_select *s)
{
    const struct hed_fatbin_entry *e = &image->entry;
    char own[HED_ARCH_TEXT];
    const size_t n = s->arch_prefix ? strlen(s->arch_prefix) : 0;

    if ((s->kind && e->kind != s->kind) || (s->number && image->number != s->number))
        return false;
    if (!s->arch_prefix)
        return true;
    if (e->arch.number != s->arch.number || e->arch.suffix != s->arch.suffix)
        return false;
    /* With --kind, only the number of the architecture counts. */
    return s->kind || strncmp(hed_fatbin_arch_text(e, own), s->arch_prefix, n) == 0;
}

static void
visit_entry(struct visitor *v)
{
    v->image.number = ++v->v.images;
    if (!is_selected(&v->image, v->select))
        return;
    v->v.selected++;
    if (!v->fn(v->arg, &v->image))
        v->stopped = true;
}

static void
visit_fatbin(struct visitor *v)
{
    struct hed_fatbin_walk w;
    struct hed_why why;
    int r = hed_fatbin_walk(v->image.found->bytes, &w, &why);

    v->image.fatbin = ++v->v.fatbins;
    if (r == 0) {
        w.cut = v->image.found->cut;
        while (!v->stopped && (r = hed_fatbin_next(&w, &v->image.entry, &why)) > 0)
            visit_entry(v);
    }
    if (r < 0) {
        hed_cli_say("%s: fat binary at 0x%" PRIx64 ": %s", v->image.path, v->image.found->offset,
                    why.text);
        v->v.code = HED_EXIT_FAILED;
    }
}

/* A file that is itself an image is treated like an entry of a fat binary. */
static void
visit_image_file(struct visitor *v)
{
    const struct hed_found *found = v->image.found;
    struct hed_fatbin_entry *e = &v->image.entry;
    struct hed_ptx_head head;
    struct hed_why why;

    *e = (struct hed_fatbin_entry){.stored = found->bytes, .size = found->bytes.size};
    if (found->kind == HED_FOUND_PTX) {
        e->kind = HED_FATBIN_PTX;
        if (hed_ptx_begins(found->bytes, &head)) {
            e->major = head.major;
            e->minor = head.minor;
            e->arch = head.arch;
            e->flags = head.is_64 ? HED_FATBIN_64BIT : 0;
        }
    } else {
        e->kind = HED_FATBIN_CUBIN;
        e->flags = HED_FATBIN_64BIT;
        if (hed_cubin_arch(found->bytes, &e->arch, &why) != 0) {
            hed_cli_say("%s: %s", v->image.path, why.text);
            v->v.code = HED_EXIT_FAILED;
            return;
        }
    }
    v->image.fatbin = 0;
    visit_entry(v);
}

struct hed_cli_visit
hed_cli_fatbin_visit(const char *path, const struct hed_cli_select *select, hed_cli_image_fn fn,
                     void *arg)
{
    struct visitor v = {.select = select, .fn = fn, .arg = arg};
    struct hed_find find;
    struct hed_found found;
    struct hed_why why;
    int r;

    if (hed_fatbin_map(path, &v.v.bytes, &why) != 0) {
        hed_cli_say("%s: %s", path, why.text);
        v.v.code = HED_EXIT_FAILED;
        return v.v;
    }
    hed_find_init(&find, v.v.bytes, select->find);
    v.image = (struct hed_cli_image){.path = path, .found = &found};
    while (!v.stopped && (r = hed_find_next(&find, &found, &why)) != 0) {
        if (r < 0) {
            hed_cli_say("%s: %s", path, why.text);
            v.v.code = HED_EXIT_FAILED;
            break;
        }
        if (found.kind == HED_FOUND_FATBIN)
            visit_fatbin(&v);
        else
            visit_image_file(&v);
    }
    if (v.stopped)
        v.v.code = HED_EXIT_FAILED;
    memcpy(v.v.wrappers, find.wrappers, sizeof v.v.wrappers);
    hed_fatbin_unmap(v.v.bytes);
    return v.v;
}

/* ---- words ----------------------------------------------------------------------- */

static bool
read_kind(const struct hed_cli_opts *o, struct hed_cli_select *select)
{
    static const struct {
        const char *name;
        uint16_t kind;
    } names[] = {{"ptx", HED_FATBIN_PTX},
                 {"cubin", HED_FATBIN_CUBIN},
                 {"elf", HED_FATBIN_CUBIN},
                 {"lto", HED_FATBIN_LTO}};
    uint64_t n;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(o->value, names[i].name) == 0) {
            select->kind = names[i].kind;
            return true;
        }
    }
    if (hed_parse_u64(o->value, &n) == 0 && n > 0 && n <= UINT16_MAX) {
        select->kind = (uint16_t)n;
        return true;
    }
    hed_cli_say("%s: --kind: there is no '%s'; choose from ptx, cubin and lto, or give a number",
                o->command, o->value);
    return false;
}

static bool
read_arch(const struct hed_cli_opts *o, struct hed_cli_select *select)
{
    if (hed_arch_parse(o->value, &select->arch, &select->arch_prefix) == 0)
        return true;
    hed_cli_say("%s: --arch '%s' is not an architecture such as sm_90, sm_90a, compute_90 or 90",
                o->command, o->value);
    return false;
}

static bool
read_entry_number(const struct hed_cli_opts *o, struct hed_cli_select *select)
{
    if (hed_parse_u64(o->value, &select->number) == 0 && select->number > 0)
        return true;
    hed_cli_say("%s: --entry '%s' is not the number of an entry; they count from 1", o->command,
                o->value);
    return false;
}

/* Takes one option, by its name. False: the value is wrong, and the reason was printed. */
static bool
take_fatbin_option(const struct hed_cli_opts *o, const char *name, struct hed_asked *asked)
{
    if (strcmp(name, "kind") == 0)
        return read_kind(o, &asked->select);
    if (strcmp(name, "arch") == 0)
        return read_arch(o, &asked->select);
    if (strcmp(name, "entry") == 0)
        return read_entry_number(o, &asked->select);
    if (strcmp(name, "output") == 0)
        asked->dir = o->value;
    else if (strcmp(name, "kernel") == 0)
        asked->kernel = o->value;
    else if (strcmp(name, "sections") == 0)
        asked->select.find |= HED_FIND_SECTIONS;
    else if (strcmp(name, "kernels") == 0)
        asked->kernels = true;
    else if (strcmp(name, "json") == 0)
        asked->json = true;
    else if (strcmp(name, "count") == 0)
        asked->count = true;
    else if (strcmp(name, "module") == 0)
        asked->module = true;
    else
        hed_bug("fatbin: nobody reads --%s", name);
    return true;
}

int
hed_cli_fatbin_words(struct hed_cli_opts *o, const char *usage, struct hed_asked *asked,
                     char **files)
{
    bool plain = false;
    int count = 0;
    int word;

    while ((word = hed_cli_words_next(o, &plain)) != HED_CLI_OPT_END) {
        if (word == HED_CLI_OPERAND) {
            files[count++] = (char *)(uintptr_t)o->value;
            continue;
        }
        if (word == HED_CLI_OPT_BAD)
            return -1 - HED_EXIT_USAGE;
        if (strcmp(o->table[word].name, "help") == 0) {
            fputs(usage, stdout);
            return -1 - HED_EXIT_OK;
        }
        if (!take_fatbin_option(o, o->table[word].name, asked))
            return -1 - HED_EXIT_USAGE;
    }
    return count;
}

bool
hed_cli_fatbin_wants(const struct hed_asked *asked, struct hed_bytes kernel)
{
    return !asked->kernel || (kernel.size == strlen(asked->kernel) &&
                              memcmp(kernel.data, asked->kernel, kernel.size) == 0);
}

/* ---- text ------------------------------------------------------------------------------------ */

const char *
hed_cli_fatbin_kind_text(uint16_t kind, char *out)
{
    const char *name = hed_fatbin_kind_name(kind);

    if (name)
        hed_str_copy(out, 16, name);
    else
        snprintf(out, 16, "kind %u", kind);
    return out;
}

void
hed_cli_fatbin_print(FILE *out, struct hed_bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t c = text.data[i];

        fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
}

void
hed_cli_fatbin_json(struct hed_buf *b, const char *key, struct hed_bytes value)
{
    hed_str_field(b, key, (const char *)value.data, value.size);
}

void
hed_cli_fatbin_json_text(struct hed_buf *b, const char *key, const char *value)
{
    hed_cli_fatbin_json(b, key, (struct hed_bytes){(const uint8_t *)value, strlen(value)});
}
