/* Tests of locate with made-up files, which it judges without loading them. */
#include "harness/unit.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "locate/driver.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define OTHER EM_AARCH64
#else
#define MACHINE EM_AARCH64
#define OTHER EM_X86_64
#endif

static const char *
path_of(const char *name)
{
    static char path[1024];

    snprintf(path, sizeof path, "%s/%s", getenv("HED_SCRATCH"), name);
    return path;
}

static const char *
file_of(const char *name, const void *p, size_t n)
{
    FILE *f = fopen(path_of(name), "w");

    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
    return path_of(name);
}

static Elf64_Ehdr
good_head(void)
{
    return (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = MACHINE,
    };
}

static void
reject(const char *path, const char *reason)
{
    const char *got = hed_locate_reject(path);
    char found[64];
    struct hed_why why = {""};

    assert_string_equal(got ? got : "(taken)", reason ? reason : "(taken)");
    memset(found, 'x', sizeof found);
    if (reason) {
        char expected[2048];

        snprintf(expected, sizeof expected, "%s %s", path, reason);
        assert_int_equal(hed_locate_find("libcuda.so.1", path, found, sizeof found, &why),
                         HED_EINVAL);
        assert_string_equal(why.text, expected);
        assert_int_equal(found[0], 'x'); /* untouched */
    }
}

static void
files_that_are_not_elf_are_rejected(void **state)
{
    reject(file_of("empty", "", 0), "is not a library");
    reject(
        file_of("text", "#!/bin/sh\necho a text file that is longer than the header of one\n", 65),
        "is not a library");
    reject("/", "invalid value");
    reject("/dev/null", "invalid value");
    reject(path_of("missing"), "not found");
}

static void
every_truncation_is_rejected(void **state)
{
    const Elf64_Ehdr head = good_head();

    for (size_t n = 0; n < sizeof head; n++)
        assert_non_null(hed_locate_reject(file_of("cut", &head, n)));
    reject(file_of("whole", &head, sizeof head), NULL);
}

static void
other_machines_are_rejected(void **state)
{
    Elf64_Ehdr head = good_head();

    head.e_machine = OTHER;
    reject(file_of("other", &head, sizeof head), "is for another kind of machine");
    head = good_head();
    head.e_ident[EI_CLASS] = ELFCLASS32;
    reject(file_of("narrow", &head, sizeof head), "is for another kind of machine");
    head = good_head();
    head.e_ident[EI_DATA] = ELFDATA2MSB;
    reject(file_of("big", &head, sizeof head), "is for another kind of machine");
}

static void
stubs_are_rejected(void **state)
{
    const Elf64_Ehdr head = good_head();
    char link[1100];

    assert_int_equal(mkdir(path_of("stubs"), 0777), 0);
    reject(file_of("stubs/libcuda.so", &head, sizeof head),
           "is the CUDA toolkit's stub, for linking only");
    /* Whatever its name. */
    snprintf(link, sizeof link, "%s/libcuda.so.1", getenv("HED_SCRATCH"));
    assert_int_equal(symlink("stubs/libcuda.so", link), 0);
    reject(link, "is the CUDA toolkit's stub, for linking only");
}

/* Makes a file with a dynamic section that needs `name`, in which some numbers are replaced. */
struct library {
    Elf64_Ehdr head;
    Elf64_Phdr load, dynamic;
    Elf64_Dyn entries[3];
    char strings[32];
};

static struct library
library_needing(const char *name)
{
    struct library l = {
        .head = good_head(),
        .load = {.p_type = PT_LOAD, .p_filesz = sizeof l},
        .dynamic = {.p_type = PT_DYNAMIC,
                    .p_offset = offsetof(struct library, entries),
                    .p_filesz = sizeof l.entries},
        .entries = {{DT_NEEDED, {1}}, {DT_STRTAB, {offsetof(struct library, strings)}}},
    };

    l.head.e_phoff = offsetof(struct library, load);
    l.head.e_phentsize = sizeof l.load;
    l.head.e_phnum = 2;
    snprintf(l.strings + 1, sizeof l.strings - 1, "%s", name);
    return l;
}

static void
heddle_itself_is_rejected(void **state)
{
    struct library l = library_needing("libheddle.so");

    reject(file_of("ours", &l, sizeof l), "is heddle itself");
    l = library_needing("libc.so.6");
    reject(file_of("theirs", &l, sizeof l), NULL);
}

/* Replaces each 64-bit number by a large one: locate checks it and does not crash. */
static void
damaged_libraries_do_no_harm(void **state)
{
    static const uint64_t values[] = {0,         1, 0xffff, 0x7fffffff, INT64_MAX, UINT64_MAX - 15,
                                      UINT64_MAX};

    for (size_t at = 0; at + 8 <= sizeof(struct library); at += 4) {
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            struct library l = library_needing("libheddle.so");

            memcpy((char *)&l + at, &values[i], sizeof values[i]);
            (void)hed_locate_reject(file_of("damaged", &l, sizeof l));
        }
    }
    for (size_t n = 0; n < sizeof(struct library); n += 3) {
        const struct library l = library_needing("libheddle.so");

        (void)hed_locate_reject(file_of("damaged", &l, n));
    }
}

static void
a_fifo_does_not_hang_the_program(void **state)
{
    assert_int_equal(mkfifo(path_of("fifo"), 0666), 0);
    alarm(PATIENCE_S); /* ends the test, not the wait */
    reject(path_of("fifo"), "invalid value");
    alarm(0);
}

static void
a_path_that_does_not_fit_is_refused(void **state)
{
    const Elf64_Ehdr head = good_head();
    const char *path = file_of("good", &head, sizeof head);
    char found[1024];
    struct hed_why why = {""};

    assert_int_equal(hed_locate_find("libcuda.so.1", path, found, sizeof found, &why), 0);
    assert_string_equal(found, path);
    assert_int_equal(hed_locate_find("libcuda.so.1", path, found, 5, &why), HED_EINVAL);
    assert_non_null(strstr(why.text, "is too long a path"));
    assert_int_equal(hed_locate_find("libcuda.so.1", path, found, 5, NULL), HED_EINVAL);
}

static void
a_library_that_does_not_exist_is_not_found(void **state)
{
    char found[1024] = "untouched";
    struct hed_why why = {""};

    assert_int_equal(hed_locate_find("libhed-none.so.1", "", found, sizeof found, &why),
                     HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "NVIDIA's libhed-none.so.1 was not found"));
    assert_non_null(strstr(why.text, "the setting 'driver'"));
    assert_string_equal(found, "untouched");
    assert_int_equal(hed_locate_find("libhed-ml.so.1", "", found, sizeof found, &why),
                     HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "the setting 'nvml'"));
}

/* This searches the cache and the folders of this machine, where libc is sure to be. */
static void
the_loaders_cache_is_searched(void **state)
{
    char found[1024] = "";
    struct hed_why why = {""};

    if (access("/etc/ld.so.cache", R_OK) != 0)
        skip();
    assert_int_equal(hed_locate_find("libc.so.6", "", found, sizeof found, &why), 0);
    assert_non_null(strstr(found, "/libc.so.6"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(files_that_are_not_elf_are_rejected),
    cmocka_unit_test(every_truncation_is_rejected),
    cmocka_unit_test(other_machines_are_rejected),
    cmocka_unit_test(stubs_are_rejected),
    cmocka_unit_test(heddle_itself_is_rejected),
    cmocka_unit_test(damaged_libraries_do_no_harm),
    cmocka_unit_test(a_fifo_does_not_hang_the_program),
    cmocka_unit_test(a_path_that_does_not_fit_is_refused),
    cmocka_unit_test(a_library_that_does_not_exist_is_not_found),
    cmocka_unit_test(the_loaders_cache_is_searched),
};

HED_UNIT_MAIN(tests)
