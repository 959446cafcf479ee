/* heddle fatbin disasm: the machine code of kernels as text. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/fatbin/fatbin.h"
#include "kernel/fatbin.h"
#include "kernel/sass.h"

#define EXACT_ARCHS "sm_75 to sm_90"

static const char usage[] =
    "usage: heddle fatbin disasm FILE... [OPTION...]\n"
    "\n"
    "Prints the machine code (SASS) of the kernels in each file, one instruction per\n"
    "line, in the syntax of nvdisasm. The encoding is that of " EXACT_ARCHS ".\n"
    "Code of other architectures is read the same way, with a warning: memory\n"
    "accesses and branches of later ones are wrong.\n"
    "Unknown instructions are printed as numbers.\n"
    "\n"
    "  --kernel K     only the kernel or function K, by its mangled name\n"
    "  --arch ARCH    only code for sm_80, sm_90a, ...\n"
    "  --entry N      only image number N of `heddle fatbin list`\n"
    "  --sections     search only the sections where compilers put GPU code\n"
    "  -h, --help     show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if there is no such code or a file is damaged,\n"
    "2 if an option is wrong.\n";

static const struct hed_cli_opt options[] = {
    {"kernel", true},    {"arch", true},  {"entry", true},
    {"sections", false}, {"help", false}, {NULL, false},
};

struct disasm {
    struct hed_asked asked;
    uint64_t listed;
    uint64_t unknown; /* instructions */
    int code;
    struct hed_arena arena;
};

static void
print_line(void *arg, const char *line)
{
    (void)arg;
    puts(line);
}

/* Has the architecture the encoding that src/kernel/sass knows (EXACT_ARCHS)? */
static bool
is_exact(struct hed_arch arch)
{
    return arch.number >= 75 && arch.number <= 90;
}

/* What the cubin itself says counts: the entry of a fat binary may say something else. */
static void
warn_of_encoding(const struct hed_cli_image *m, struct hed_bytes image)
{
    char text[HED_ARCH_TEXT];
    struct hed_arch arch;

    if (hed_cubin_arch(image, &arch, NULL) == 0 && !is_exact(arch))
        hed_cli_say("%s: entry %" PRIu64 " is code for %s, which is read as if it were older: "
                    "instructions may be printed wrongly (only " EXACT_ARCHS " are exact)",
                    m->path, m->number, hed_arch_text(arch, "sm_", text));
}

static int
list_sections(struct disasm *d, const struct hed_cli_image *m, struct hed_bytes image,
              struct hed_why *why)
{
    const uint64_t listed = d->listed;
    struct hed_sass_code *all;
    uint32_t count;
    int64_t unknown = hed_sass_sections(image, &d->arena, &all, &count, why);

    for (uint32_t i = 0; unknown >= 0 && i < count; i++) {
        if (!hed_cli_fatbin_wants(&d->asked, all[i].name))
            continue;
        if (d->listed == listed)
            warn_of_encoding(m, image);
        fputs("//--------------------- .text.", stdout);
        hed_cli_fatbin_print(stdout, all[i].name);
        puts(" --------------------------");
        unknown = hed_sass_list(&all[i], &d->arena, print_line, NULL);
        if (unknown < 0)
            hed_why_set(why, "cannot be listed: %s", hed_err_text((int)unknown));
        else
            d->unknown += (uint64_t)unknown;
        d->listed++;
    }
    return unknown < 0 ? (int)unknown : 0;
}

static bool
disassemble_image(void *arg, const struct hed_cli_image *m)
{
    struct disasm *d = arg;
    struct hed_bytes image;
    struct hed_why why = {""};

    hed_arena_reset(&d->arena);

    int err = hed_fatbin_image(&m->entry, &d->arena, &image, &why);

    if (err == 0)
        err = list_sections(d, m, image, &why);
    if (err != 0) {
        hed_cli_say("%s: entry %" PRIu64 " %s", m->path, m->number, why.text);
        d->code = HED_EXIT_FAILED;
    }
    return true;
}

static void
disassemble_file(struct disasm *d, const char *path)
{
    d->listed = 0;

    const struct hed_cli_visit v =
        hed_cli_fatbin_visit(path, &d->asked.select, disassemble_image, d);

    if (v.code != HED_EXIT_OK) {
        d->code = v.code;
    } else if (d->listed == 0 && d->code == HED_EXIT_OK && (d->asked.kernel || !v.selected)) {
        if (v.selected)
            hed_cli_say("%s: no machine code of a kernel %s; heddle fatbin list --kernels names "
                        "those that there are",
                        path, d->asked.kernel);
        else
            hed_cli_say("%s: no machine code found; heddle fatbin list shows what there is", path);
        d->code = HED_EXIT_FAILED;
    }
}

int
hed_cli_fatbin_disasm(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct disasm d = {.code = HED_EXIT_OK};

    o.command = "fatbin disasm";

    const int count = hed_cli_fatbin_words(&o, usage, &d.asked, argv);

    if (count < 0)
        return -1 - count;
    if (count == 0) {
        hed_cli_say("fatbin disasm: no file given; see heddle fatbin disasm --help");
        return HED_EXIT_USAGE;
    }
    d.asked.select.kind = HED_FATBIN_CUBIN;
    hed_arena_init(&d.arena, HED_CLI_IMAGE_MAX);
    for (int i = 0; i < count; i++)
        disassemble_file(&d, argv[i]);
    hed_arena_fini(&d.arena);
    if (d.unknown)
        hed_cli_say("fatbin disasm: %" PRIu64 " unknown instructions were printed as numbers",
                    d.unknown);
    return d.code;
}
