/* heddle fatbin extract: writes the images of files to files, unpacked. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/fatbin/fatbin.h"

static const char usage[] =
    "usage: heddle fatbin extract FILE... [OPTION...]\n"
    "\n"
    "Writes the PTX and cubins in each file, unpacked, to FILE.N.compute_90.ptx and\n"
    "FILE.N.sm_90.cubin, and prints the names. N is the number that\n"
    "`heddle fatbin list` shows.\n"
    "\n"
    "  --kind KIND       only images of this kind: ptx, cubin, lto, or a number\n"
    "  --arch ARCH       only images for sm_90, sm_90a, compute_90, ...; 90: of any\n"
    "                    kind\n"
    "  --entry N         only image number N\n"
    "  -o, --output DIR  write to this folder, which is created if necessary, or to\n"
    "                    standard output if DIR is - (default: the current folder)\n"
    "  --sections        search only the sections where compilers put GPU code\n"
    "  --json            print one JSON object per line instead of the names\n"
    "  -h, --help        show this help\n"
    "\n"
    "The exit code is 0 if all images were written, 1 if some were not or there are\n"
    "none, 2 if an option is wrong.\n";

static const struct hed_cli_opt options[] = {
    {"kind", true},      {"arch", true},  {"entry", true}, {"output", true},
    {"sections", false}, {"json", false}, {"help", false}, {NULL, false},
};

struct extract {
    struct hed_asked asked;
    bool to_stdout;
    uint64_t left_out;
    int code;
    struct hed_arena arena;
    struct hed_buf buf;
};

/* 0 or errno. */
static int
write_bytes(int fd, struct hed_bytes b)
{
    for (size_t at = 0; at < b.size;) {
        const ssize_t n = write(fd, b.data + at, b.size - at);

        if (n < 0 && errno != EINTR)
            return errno;
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int
write_image_file(const char *path, struct hed_bytes b)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0)
        return errno;

    const int err = write_bytes(fd, b);

    /* Some file systems report only here that the disk is full. */
    if (close(fd) != 0 && !err)
        return errno;
    return err;
}

static void
report_file(struct extract *x, const struct hed_cli_image *m, const char *path, size_t size)
{
    if (!x->asked.json) {
        puts(path);
        return;
    }
    hed_buf_reset(&x->buf);
    hed_buf_addf(&x->buf, "{");
    hed_cli_fatbin_json_text(&x->buf, "file", m->path);
    hed_buf_addf(&x->buf, ",\"entry\":%" PRIu64 ",", m->number);
    hed_cli_fatbin_json_text(&x->buf, "path", path);
    hed_buf_addf(&x->buf, ",\"size\":%zu}", size);
    puts(hed_buf_cstr(&x->buf));
}

static bool
write_image(struct extract *x, const struct hed_cli_image *m, struct hed_bytes image)
{
    const char *kind = hed_fatbin_kind_name(m->entry.kind);
    char path[PATH_MAX], arch[HED_ARCH_TEXT], number[16];
    int n, err;

    if (x->to_stdout) {
        err = write_bytes(STDOUT_FILENO, image);
        if (err)
            hed_cli_say("fatbin extract: cannot write the output: %s", strerror(err));
        return err == 0;
    }
    snprintf(number, sizeof number, "kind%u", m->entry.kind);
    n = snprintf(path, sizeof path, "%s/%s.%" PRIu64 ".%s.%s", x->asked.dir,
                 hed_str_base_name(m->path), m->number, hed_fatbin_arch_text(&m->entry, arch),
                 kind ? kind : number);
    err = n < 0 || (size_t)n >= sizeof path ? ENAMETOOLONG : write_image_file(path, image);
    if (err) {
        hed_cli_say("fatbin extract: cannot write '%s': %s", path, strerror(err));
        return false;
    }
    report_file(x, m, path, image.size);
    return true;
}

static bool
extract_image(void *arg, const struct hed_cli_image *m)
{
    struct extract *x = arg;
    struct hed_bytes image;
    struct hed_why why;
    /* An image that --kind or --entry asks for is tried, whatever it is. */
    const bool is_asked_for = x->asked.select.kind || x->asked.select.number;

    if (!is_asked_for && m->entry.kind != HED_FATBIN_PTX && m->entry.kind != HED_FATBIN_CUBIN) {
        x->left_out++;
        return true;
    }
    hed_arena_reset(&x->arena);
    if (hed_fatbin_image(&m->entry, &x->arena, &image, &why) != 0) {
        /* The others may be fine. */
        hed_cli_say("%s: entry %" PRIu64 " %s", m->path, m->number, why.text);
        x->code = HED_EXIT_FAILED;
        return true;
    }
    return write_image(x, m, image);
}

static bool
count_only(void *arg, const struct hed_cli_image *m)
{
    return true;
}

static void
extract_file(struct extract *x, const char *path)
{
    x->left_out = 0;

    const struct hed_cli_visit v = hed_cli_fatbin_visit(path, &x->asked.select, extract_image, x);

    if (v.code != HED_EXIT_OK) {
        x->code = v.code;
    } else if (v.selected == 0) {
        hed_cli_say(v.images ? "%s: none of its %" PRIu64 " images matches"
                             : "%s: no GPU code found",
                    path, v.images);
        x->code = HED_EXIT_FAILED;
    }
    if (x->left_out)
        hed_cli_say("%s: left out %" PRIu64
                    " images that are neither PTX nor cubins; --kind selects "
                    "them",
                    path, x->left_out);
}

/* Standard output takes one image, and two files of one name would overwrite each other's images.
 */
static bool
check_outputs(const struct extract *x, char *const *files, int count)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i && !x->to_stdout; j++) {
            if (strcmp(hed_str_base_name(files[i]), hed_str_base_name(files[j])) == 0) {
                hed_cli_say("fatbin extract: '%s' and '%s' have the same name; extract one at a "
                            "time",
                            files[j], files[i]);
                return false;
            }
        }
    }
    if (!x->to_stdout)
        return true;
    if (count > 1 ||
        hed_cli_fatbin_visit(files[0], &x->asked.select, count_only, NULL).selected > 1) {
        hed_cli_say("fatbin extract: standard output takes only one image; add --entry N");
        return false;
    }
    return true;
}

int
hed_cli_fatbin_extract(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct extract x = {.code = HED_EXIT_OK, .asked = {.dir = "."}};

    o.command = "fatbin extract";

    const int count = hed_cli_fatbin_words(&o, usage, &x.asked, argv);

    if (count < 0)
        return -1 - count;
    if (count == 0) {
        hed_cli_say("fatbin extract: no file given; see heddle fatbin extract --help");
        return HED_EXIT_USAGE;
    }
    x.to_stdout = strcmp(x.asked.dir, "-") == 0;
    if (!check_outputs(&x, argv, count))
        return HED_EXIT_USAGE;
    if (!x.to_stdout && mkdir(x.asked.dir, 0777) != 0 && errno != EEXIST) {
        hed_cli_say("fatbin extract: cannot create '%s': %s", x.asked.dir, strerror(errno));
        return HED_EXIT_FAILED;
    }
    hed_arena_init(&x.arena, HED_CLI_IMAGE_MAX);
    hed_buf_init(&x.buf, 8 * PATH_MAX);
    for (int i = 0; i < count; i++)
        extract_file(&x, argv[i]);
    hed_arena_fini(&x.arena);
    hed_buf_fini(&x.buf);
    return x.code;
}
