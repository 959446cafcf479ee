/* The texts for QEMU and libvirt. */
#include "harness/unit.h"

#include "base/buf.h"
#include "base/err.h"
#include "cli/vm/vm.h"

static struct hed_cli_guest
guest_at(const char *socket)
{
    struct hed_cli_guest g = {.name = "a", .window = "/dev/shm/heddle-vm-7-a", .size = 1u << 30};

    (void)snprintf(g.socket, sizeof g.socket, "%s", socket);
    return g;
}

static void
sizes_are_as_qemu_reads_them(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {{0, "0"},
                {UINT64_C(32) << 20, "32M"},
                {UINT64_C(1536) << 20, "1536M"},
                {UINT64_C(1) << 30, "1G"},
                {UINT64_C(1) << 40, "1024G"}};
    struct hed_buf b;

    hed_buf_init(&b, 64);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hed_buf_reset(&b);
        hed_vm_qemu_size(&b, rows[i].bytes);
        assert_string_equal(hed_buf_cstr(&b), rows[i].text);
    }
    hed_buf_fini(&b);
}

static void
commas_in_paths_are_doubled(void **state)
{
    const struct hed_cli_guest g = guest_at("/run/a,b/s.sock");
    struct hed_buf b;

    hed_buf_init(&b, 4096);
    assert_int_equal(hed_vm_qemu_options(&b, g.socket, g.window, g.size, HED_VM_RAM, " "), 0);
    assert_non_null(strstr(hed_buf_cstr(&b), "path=/run/a,,b/s.sock -device"));
    hed_buf_reset(&b);
    hed_cli_libvirt_xml(&b, &g);
    assert_non_null(strstr(hed_buf_cstr(&b), "path=/run/a,,b/s.sock'/>"));
    hed_buf_fini(&b);
}

static void
paths_that_a_shell_would_change_are_refused(void **state)
{
    static const char *const paths[] = {"/run/a b/s", "/run/a\tb/s", "/run/*/s",
                                        "/run/a\nb",  "/run/'a'/s",  "/run/[a]/s"};
    struct hed_buf b;

    hed_buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct hed_cli_guest g = guest_at(paths[i]);

        assert_int_equal(hed_vm_qemu_options(&b, g.socket, g.window, g.size, HED_VM_RAM, " "),
                         HED_EINVAL);
        assert_int_equal(b.size, 0);
    }
    hed_buf_fini(&b);
}

static void
xml_is_escaped(void **state)
{
    const struct hed_cli_guest g = guest_at("/run/<a>&'b'/s");
    struct hed_buf b;

    hed_buf_init(&b, 4096);
    hed_cli_libvirt_xml(&b, &g);
    assert_non_null(strstr(hed_buf_cstr(&b), "path=/run/&lt;a>&amp;&apos;b&apos;/s'/>"));
    hed_buf_fini(&b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_are_as_qemu_reads_them),
    cmocka_unit_test(commas_in_paths_are_doubled),
    cmocka_unit_test(paths_that_a_shell_would_change_are_refused),
    cmocka_unit_test(xml_is_escaped),
};

HED_UNIT_MAIN(tests)
