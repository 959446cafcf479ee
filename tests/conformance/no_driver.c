/* Without NVIDIA's driver, or with something else in its place: an error and a reason, never a
 * crash, and the names of errors still work.
 */
#include "conf.h"

#include <elf.h>

/* Prints what cuInit answers, and checks that other functions of the library still work. */
static int
print_init(void)
{
    const CUresult r = CU(cuInit)(0);
    const char *name = NULL;
    const char *text = NULL;
    void *pfn = (void *)1;
    int count = 7;

    CHECK_IS(CU(cuGetErrorName)(CUDA_ERROR_NO_DEVICE, &name), CUDA_SUCCESS);
    CHECK(strcmp(name, "CUDA_ERROR_NO_DEVICE") == 0, "%s", name);
    CHECK_IS(CU(cuGetErrorString)(r, &text), CUDA_SUCCESS);
    CHECK(*text, "no text");
    if (r != CUDA_SUCCESS) {
        CHECK_IS(CU(cuDeviceGetCount)(&count), r);
        CHECK_IS(count, 7);
        CHECK_IS(CU(cuGetProcAddress_v2)("cuInit", &pfn, 13000, 0, NULL), r);
    }
    return r == CUDA_SUCCESS ? 0 : r == CUDA_ERROR_NO_DEVICE ? 10 : r == 802 ? 20 : 30;
}

static int
with_driver(const char *path, char *text, size_t size)
{
    const char *const env[] = {"HEDDLE_GPU", "gpu", "HEDDLE_DRIVER", path, "HEDDLE_LOG",
                               "error",      NULL};

    return conf_again("run", text, size, env);
}

static void
write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "w");

    CHECK(f && fwrite(p, 1, n, f) == n && fclose(f) == 0, "cannot write %s", path);
}

static void
wrong(const char *path, const char *reason)
{
    char text[8192];
    const int status = with_driver(path, text, sizeof text);

    CHECK(status == 20, "%s: status %d: %s", path, status, text);
    CHECK(strstr(text, path), "%s is not named: %s", path, text);
    CHECK(strstr(text, reason), "%s: not '%s' but: %s", path, reason, text);
}

static void
without_any(void)
{
    char text[8192];
    const char *const env[] = {"HEDDLE_GPU", "gpu", "HEDDLE_DRIVER", NULL, "HEDDLE_LOG",
                               "error",      NULL};
    const int status = conf_again("run", text, sizeof text, env);

    if (status == 0) {
        printf("there is a driver on this machine\n");
        return;
    }
    CHECK(status == 10, "status %d: %s", status, text);
    CHECK(strstr(text, "NVIDIA's libcuda.so.1 was not found"), "%s", text);

    /* The library is silent unless it is asked to log. */
    const char *const quiet[] = {"HEDDLE_GPU", "gpu", "HEDDLE_DRIVER", NULL, NULL};

    CHECK_IS(conf_again("run", text, sizeof text, quiet), 10);
    CHECK(*text == 0, "it says: %s", text);
}

static void
bad_settings(void)
{
    char text[8192];
    const char *const unknown[] = {"HEDDLE_COLOUR", "red", "HEDDLE_LOG", "error", NULL};
    const char *const place[] = {"HEDDLE_GPU", "abacus", "HEDDLE_LOG", "error", NULL};

    CHECK_IS(conf_again("run", text, sizeof text, unknown), 20);
    CHECK(strstr(text, "HEDDLE_COLOUR: there is no setting"), "%s", text);
    CHECK_IS(conf_again("run", text, sizeof text, place), 20);
    CHECK(strstr(text, "there is no 'abacus'"), "%s", text);
}

int
main(int argc, char **argv)
{
    char path[4096];
    Elf64_Ehdr head = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
#if defined(__x86_64__)
        .e_machine = EM_AARCH64,
#else
        .e_machine = EM_X86_64,
#endif
    };

    if (argc > 1)
        return print_init();
    without_any();
    bad_settings();
    write_file(conf_path(path, sizeof path, "other"), &head, sizeof head);
    wrong(path, "another kind of machine");
    write_file(conf_path(path, sizeof path, "text"), "a text file\n", 12);
    wrong(path, "not a library");
    wrong(conf_path(path, sizeof path, "missing"), "not found");
    wrong(conf_path(path, sizeof path, ""), "invalid value");
    wrong(conf_libcuda(), "heddle itself");

    /* An ELF file for this machine that cannot be loaded. */
    head.e_machine = head.e_machine == EM_X86_64 ? EM_AARCH64 : EM_X86_64;
    write_file(conf_path(path, sizeof path, "empty"), &head, sizeof head);
    wrong(path, "cannot load");
    return 0;
}
