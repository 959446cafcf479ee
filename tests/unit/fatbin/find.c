/* Tests of fatbin/find, image and ptx_text: GPU code in files and behind pointers. */
#include "unit/fatbin/make.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/fatbin/find.h"
#include "kernel/fatbin/image.h"
#include "kernel/fatbin/ptx_text.h"

/* Returns how many are found. *r receives the last result, *last the last image found. */
static int
count_images(const char *file, unsigned flags, int *r, struct hed_found *last)
{
    struct hed_find f;
    struct hed_why why = {""};
    int n = 0;

    hed_find_init(&f, fixture(file), flags);
    while ((*r = hed_find_next(&f, last, &why)) > 0)
        n++;
    assert_true(*r == 0 || why.text[0]);
    return n;
}

static void
sections_of_a_program_are_searched(void **state)
{
    struct hed_find f;
    struct hed_found found[4];
    int n = 0;

    hed_find_init(&f, fixture("fatbin_find/elf"), 0);
    while (n < 4 && hed_find_next(&f, &found[n], NULL) > 0)
        n++;
    assert_int_equal(n, 3);
    assert_true(says(found[0].section, ".nv_fatbin"));
    assert_int_equal(found[0].bytes.size, fixture("fatbin/plain").size);
    assert_false(found[0].relocatable);
    assert_true(says(found[1].section, ".nv_fatbin"));
    assert_true(says(found[2].section, "__nv_relfatbin"));
    assert_true(found[2].relocatable);
    assert_ptr_equal(f.file.data + found[1].offset, found[1].bytes.data);
    assert_int_equal(f.wrappers[1], 1);
    assert_int_equal(f.wrappers[2], 1);
    assert_int_equal(f.wrappers[0], 1);
}

static void
every_kind_of_file_is_searched(void **state)
{
    static const struct {
        const char *file;
        unsigned flags;
        int count;
        int result;
        enum hed_found_kind kind;
    } rows[] = {
        {"fatbin/many", 0, 1, 0, HED_FOUND_FATBIN},
        {"cubin/sm_90", 0, 1, 0, HED_FOUND_CUBIN},
        {"cubin/host", 0, 0, 0, 0},
        {"fatbin_find/ptx", 0, 1, 0, HED_FOUND_PTX},
        {"fatbin_find/raw", 0, 2, 0, HED_FOUND_FATBIN},
        {"fatbin_find/nothing", 0, 0, 0, 0},
        {"fatbin_find/elsewhere", 0, 1, 0, HED_FOUND_FATBIN},
        {"fatbin_find/elsewhere", HED_FIND_SECTIONS, 0, 0, 0},
        {"fatbin_find/elf", HED_FIND_SECTIONS, 3, 0, HED_FOUND_FATBIN},
        {"fatbin_find/stripped", 0, 3, 0, HED_FOUND_FATBIN},
        {"fatbin_find/archive", 0, 3, 0, HED_FOUND_PTX},
        {"fatbin_find/bits", 0, 0, HED_ENOTSUP, 0},
        {"fatbin_find/cut", 0, 0, HED_ETRUNC, 0},
        {"fatbin_find/cut_archive", 0, 0, HED_ETRUNC, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hed_found last = {0};
        int r;

        if (count_images(rows[i].file, rows[i].flags, &r, &last) != rows[i].count)
            fail_msg("%s: row %zu", rows[i].file, i);
        assert_int_equal(r, rows[i].result);
        assert_int_equal(last.kind, rows[i].kind);
    }
}

static void
members_of_archives_have_names(void **state)
{
    static const char *const names[] = {"a.o", "a_name_that_is_too_long.o", "k.ptx"};
    struct hed_find f;
    struct hed_found found;

    hed_find_init(&f, fixture("fatbin_find/archive"), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hed_find_next(&f, &found, NULL), 1);
        assert_true(says(found.member, names[i]));
    }
}

static void
a_truncated_fat_binary_is_marked(void **state)
{
    struct hed_found last;
    int r;

    assert_int_equal(count_images("fatbin_find/cut_section", 0, &r, &last), 1);
    assert_true(last.cut);
    assert_true(says(last.section, ".nv_fatbin"));
}

static void
images_behind_pointers_are_found(void **state)
{
    static const char ptx[] = ".version 7.0\n.target sm_52\n";
    const struct hed_bytes fatbin = fixture("fatbin/many");
    const struct hed_bytes cubin = fixture("cubin/sm_90");
    const void *const parts[] = {fatbin.data, NULL};
    struct {
        uint32_t magic, version;
        const void *data;
        const void *parts;
    } wrapper = {HED_FATBIN_WRAPPER_MAGIC, 1, fatbin.data, parts};
    struct hed_image i;

    assert_int_equal(hed_image_at(fatbin.data, &i, NULL), 0);
    assert_int_equal(i.kind, HED_IMAGE_FATBIN);
    assert_int_equal(i.bytes.size, fatbin.size);
    assert_int_equal(hed_image_at(cubin.data, &i, NULL), 0);
    assert_int_equal(i.kind, HED_IMAGE_CUBIN);
    assert_int_equal(i.bytes.size, cubin.size);
    assert_int_equal(hed_image_at(ptx, &i, NULL), 0);
    assert_int_equal(i.kind, HED_IMAGE_PTX);
    assert_int_equal(i.bytes.size, sizeof ptx - 1);
    assert_int_equal(hed_image_at(&wrapper, &i, NULL), 0);
    assert_int_equal(i.kind, HED_IMAGE_FATBIN);
    assert_null(i.parts);
    wrapper.version = 2;
    assert_int_equal(hed_image_at(&wrapper, &i, NULL), 0);
    assert_ptr_equal(i.parts, parts);
}

static void
other_pointers_are_refused(void **state)
{
    struct hed_image i;
    struct hed_why why;

    assert_int_equal(hed_image_at(NULL, &i, &why), HED_EINVAL);
    assert_int_equal(hed_image_at("", &i, &why), HED_EFORMAT);
    assert_int_equal(hed_image_at("no", &i, &why), HED_EFORMAT);
    assert_int_equal(hed_image_at("something else", &i, &why), HED_EFORMAT);
    assert_int_equal(hed_image_at(fixture("cubin/host").data, &i, &why), HED_EFORMAT);
}

/* The end of the section headers is a small number only because the sum overflows. */
static void
headers_before_the_image_are_not_read(void **state)
{
    struct {
        unsigned char before[64];
        Elf64_Ehdr head;
    } file = {.head = {.e_machine = EM_CUDA,
                       .e_shoff = UINT64_MAX - 63,
                       .e_shnum = 2,
                       .e_shentsize = sizeof(Elf64_Shdr)}};
    struct hed_image i;
    struct hed_why why;

    memcpy(file.head.e_ident, ELFMAG, SELFMAG);
    file.head.e_ident[EI_CLASS] = ELFCLASS64;
    file.head.e_ident[EI_DATA] = ELFDATA2LSB;
    assert_int_equal(hed_image_at(&file.head, &i, &why), HED_EFORMAT);
    file.head.e_shoff = 0;
    file.head.e_shnum = 0;
    file.head.e_phoff = UINT64_MAX - 63;
    file.head.e_phnum = 2;
    file.head.e_phentsize = sizeof(Elf64_Shdr);
    assert_int_equal(hed_image_at(&file.head, &i, &why), HED_EFORMAT);
}

static struct hed_bytes
text(const char *s)
{
    return (struct hed_bytes){(const uint8_t *)s, strlen(s)};
}

static void
ptx_is_recognised(void **state)
{
    const struct hed_bytes t = text("/* .version 1.0 */ // .target\n.version 8.7\n"
                                    ".target sm_90a, debug\n.address_size 64\n"
                                    ".visible .entry one(.param .u64 p) { ret; } // .entry no\n"
                                    "/* .entry no */ .file 1 \".entry no\"\n.entry\n two() {}");
    struct hed_ptx_head h;
    size_t at = 0;

    assert_true(hed_ptx_begins(t, &h));
    assert_int_equal(h.major, 8);
    assert_int_equal(h.minor, 7);
    assert_int_equal(h.arch.number, 90);
    assert_int_equal(h.arch.suffix, 'a');
    assert_true(h.is_64);
    assert_true(says(hed_ptx_next_entry(t, &at), "one"));
    assert_true(says(hed_ptx_next_entry(t, &at), "two"));
    assert_int_equal(hed_ptx_next_entry(t, &at).size, 0);
    assert_false(hed_ptx_begins(text("int main() {}"), &h));
    assert_false(hed_ptx_begins(text(".version x"), &h));
    assert_false(hed_ptx_begins(text("/* unfinished"), &h));
    assert_false(hed_ptx_begins(text(""), &h));
}

/* A copy of the bytes that ends where memory ends. */
static uint8_t *
copy_to_the_end(struct hed_bytes b, size_t *size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    *size = (b.size + page - 1) / page * page;

    uint8_t *p =
        mmap(NULL, *size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + *size, page, PROT_NONE), 0);
    memcpy(p + *size - b.size, b.data, b.size);
    return p + *size - b.size;
}

/* Each field of a header can lead to where nothing can be read. Nothing there is read. */
static void
damaged_headers_lead_nowhere(void **state)
{
    static const struct {
        const char *name;
        size_t head;
    } files[] = {{"cubin/sm_90", 64}, {"fatbin/many", 16}};
    static const uint32_t values[] = {0, 1, 0xff, 0x10000, 0x7fffffff, UINT32_MAX};
    struct hed_image i;

    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        const struct hed_bytes b = fixture(files[f].name);
        size_t size;
        uint8_t *p = copy_to_the_end(b, &size);

        for (size_t at = 4; at + 4 <= files[f].head; at += 2) {
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                memcpy(p + at, &values[v], sizeof values[v]);
                if (hed_image_at(p, &i, NULL) == 0)
                    assert_true(i.bytes.size <= b.size);
                memcpy(p + at, b.data + at, sizeof values[v]);
            }
        }
        /* Section headers, near the end of a cubin. */
        for (size_t at = b.size > 4096 ? b.size - 4096 : 64; at + 8 <= b.size; at += 8) {
            memset(p + at, 0x3f, 5);
            if (hed_image_at(p, &i, NULL) == 0)
                assert_true(i.bytes.size <= b.size);
            memcpy(p + at, b.data + at, 8);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(damaged_headers_lead_nowhere),
    cmocka_unit_test(sections_of_a_program_are_searched),
    cmocka_unit_test(every_kind_of_file_is_searched),
    cmocka_unit_test(members_of_archives_have_names),
    cmocka_unit_test(a_truncated_fat_binary_is_marked),
    cmocka_unit_test(images_behind_pointers_are_found),
    cmocka_unit_test(other_pointers_are_refused),
    cmocka_unit_test(headers_before_the_image_are_not_read),
    cmocka_unit_test(ptx_is_recognised),
};

HED_UNIT_MAIN(tests)
