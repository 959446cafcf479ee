/* heddle fatbin lift: the machine code of kernels as PTX. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/fatbin/fatbin.h"
#include "kernel/sass.h"

#define PTX_MAX ((size_t)1 << 30) /* bytes of text of one kernel */

static const char usage[] =
    "usage: heddle fatbin lift FILE... [OPTION...]\n"
    "\n"
    "Prints the machine code of the kernels in each file as PTX, one module per\n"
    "kernel. That is the text that the CPU GPU runs for code of " HED_SASS_ARCHS ".\n"
    "\n"
    "  --kernel K     only the kernel K, by its mangled name\n"
    "  --arch ARCH    only code for sm_80, sm_86, ...\n"
    "  --entry N      only image number N of `heddle fatbin list`\n"
    "  --sections     search only the sections where compilers put GPU code\n"
    "  --module       print one module per image, as --lift of heddle run makes it\n"
    "  --count        print only how many kernels are lifted, and why others are not\n"
    "  -h, --help     show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if there is no such code or something cannot be\n"
    "lifted, 2 if an option is wrong.\n";

static const struct hed_cli_opt options[] = {
    {"kernel", true},  {"arch", true},   {"entry", true}, {"sections", false},
    {"module", false}, {"count", false}, {"help", false}, {NULL, false},
};

struct lifting {
    struct hed_asked asked;
    const struct hed_cli_image *image; /* at hand */
    const struct hed_sass_program *program;
    bool only_count;
    uint64_t lifted, refused;
    int code;
    struct hed_arena arena;
};

/* Names a kernel that cannot be lifted. */
static void
say_refused(void *arg, uint32_t kernel, const char *why)
{
    struct lifting *d = arg;
    const struct hed_bytes name = d->program->cubin.kernels[kernel].name;

    hed_cli_say("%s: entry %" PRIu64 ": %.*s: %s", d->image->path, d->image->number, (int)name.size,
                (const char *)name.data, why);
    d->refused++;
    d->code = HED_EXIT_FAILED;
}

static void
lift_one(struct lifting *d, uint32_t kernel)
{
    struct hed_why why = {""};
    struct hed_buf ptx;

    hed_buf_init(&ptx, PTX_MAX);

    /* What is printed has its variables; what is only counted is what the CPU GPU can run. */
    const enum hed_sass_for use = d->only_count ? HED_SASS_FOR_CPU : HED_SASS_FOR_GPU;
    const int err = hed_sass_lift(d->program, kernel, use, &ptx, &why);

    if (err != 0) {
        say_refused(d, kernel, why.text[0] ? why.text : hed_err_text(err));
    } else {
        d->lifted++;
        if (!d->only_count)
            fputs(hed_buf_cstr(&ptx), stdout);
    }
    hed_buf_fini(&ptx);
}

static void
lift_all(struct lifting *d)
{
    const uint64_t refused = d->refused;
    struct hed_why why = {""};
    struct hed_buf ptx;

    hed_buf_init(&ptx, PTX_MAX);

    const int err = hed_sass_lift_module(d->program, say_refused, d, &ptx, &why);

    if (err == 0) {
        d->lifted += d->program->cubin.kernel_count - (d->refused - refused);
        if (!d->only_count)
            fputs(hed_buf_cstr(&ptx), stdout);
    } else if (err != HED_ENOTSUP) {
        hed_cli_say("%s: entry %" PRIu64 ": %s", d->image->path, d->image->number,
                    why.text[0] ? why.text : hed_err_text(err));
        d->code = HED_EXIT_FAILED;
    }
    hed_buf_fini(&ptx);
}

static bool
lift_image(void *arg, const struct hed_cli_image *m)
{
    struct lifting *d = arg;
    struct hed_sass_program *p;
    struct hed_bytes image;
    struct hed_why why = {""};

    hed_arena_reset(&d->arena);

    int err = hed_fatbin_image(&m->entry, &d->arena, &image, &why);

    if (err == 0)
        err = hed_sass_open(image, &d->arena, &p, &why);
    if (err != 0) {
        hed_cli_say("%s: entry %" PRIu64 ": %s", m->path, m->number,
                    why.text[0] ? why.text : hed_err_text(err));
        d->code = HED_EXIT_FAILED;
        return true;
    }
    d->image = m;
    d->program = p;
    if (d->asked.module)
        lift_all(d);
    for (uint32_t i = 0; i < p->cubin.kernel_count && !d->asked.module; i++)
        if (hed_cli_fatbin_wants(&d->asked, p->cubin.kernels[i].name))
            lift_one(d, i);
    return true;
}

static void
lift_file(struct lifting *d, const char *path)
{
    const uint64_t before = d->lifted + d->refused;
    const struct hed_cli_visit v = hed_cli_fatbin_visit(path, &d->asked.select, lift_image, d);

    if (v.code != HED_EXIT_OK) {
        d->code = v.code;
    } else if (d->lifted + d->refused == before && d->code == HED_EXIT_OK) {
        hed_cli_say("%s: no machine code of such a kernel; heddle fatbin list --kernels names "
                    "those that there are",
                    path);
        d->code = HED_EXIT_FAILED;
    }
}

int
hed_cli_fatbin_lift(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct lifting d = {.code = HED_EXIT_OK};

    o.command = "fatbin lift";

    const int count = hed_cli_fatbin_words(&o, usage, &d.asked, argv);

    if (count < 0)
        return -1 - count;
    if (count == 0) {
        hed_cli_say("fatbin lift: no file given; see heddle fatbin lift --help");
        return HED_EXIT_USAGE;
    }
    d.only_count = d.asked.count;
    d.asked.select.kind = HED_FATBIN_CUBIN;
    hed_arena_init(&d.arena, HED_CLI_IMAGE_MAX);
    for (int i = 0; i < count; i++)
        lift_file(&d, argv[i]);
    hed_arena_fini(&d.arena);
    if (d.only_count)
        printf("%" PRIu64 " of %" PRIu64 " kernels lifted\n", d.lifted, d.lifted + d.refused);
    return d.code;
}
