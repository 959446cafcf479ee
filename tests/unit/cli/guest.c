/* The doctor's section about guests: facts from a folder that stands for a machine, and findings
 * from facts. */
#include "harness/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/guest.h"

/* ---- a machine ------------------------------------------------------------------------------- */

static char root[256];

static int
make_machine(void **state)
{
    const char *scratch = getenv("HED_SCRATCH");

    (void)snprintf(root, sizeof root, "%s/machine-XXXXXX", scratch ? scratch : "/tmp");
    return mkdtemp(root) ? 0 : -1;
}

/* Writes a file of the machine, and makes its folders. */
static void
put_file(const char *name, const void *data, size_t size)
{
    char path[512];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
    }
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void
put_text(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

#define SLOT "/sys/bus/pci/devices/0000:00:05.0"

static void
put_window(const char *magic, uint32_t version)
{
    static unsigned char bar[HED_WINDOW_UNIT];
    struct hed_window_header h = {.version = version, .size = sizeof bar, .name = "alpha"};

    memcpy(h.magic, magic, sizeof h.magic);
    memcpy(bar, &h, sizeof h);
    put_text(SLOT "/vendor", "0x1af4\n");
    put_text(SLOT "/device", "0x1110\n");
    put_file(SLOT "/resource2_wc", bar, sizeof bar);
}

static struct hed_guest_facts
look(void)
{
    struct hed_guest_facts f;

    hed_guest_look(root, &f);
    return f;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void
a_bare_machine_is_no_guest(void **state)
{
    struct hed_guest_facts f = look();

    assert_int_equal(f.kind, HED_GUEST_NOT);
    assert_false(f.has_vsock);
    assert_int_equal(f.windows, 0);
    assert_string_equal(f.lockdown, "");
    put_text("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse2\n");
    put_text("/sys/class/dmi/id/sys_vendor", "Somebody\n");
    f = look();
    assert_int_equal(f.kind, HED_GUEST_NOT);
    assert_string_equal(f.maker, "Somebody");
}

static void
guests_of_others_are_known(void **state)
{
    put_text("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor sse2\n");
    assert_int_equal(look().kind, HED_GUEST_UNKNOWN);
}

static void
guests_with_virtio_are_known(void **state)
{
    put_text("/sys/bus/virtio/devices/virtio0/device", "0x0001\n");
    assert_int_equal(look().kind, HED_GUEST_UNKNOWN);
    assert_false(look().has_vsock);
}

static void
qemu_is_known_by_its_name(void **state)
{
    put_text("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    assert_int_equal(look().kind, HED_GUEST_QEMU);
}

static void
qemu_is_known_by_its_devices_in_acpi(void **state)
{
    put_text("/sys/class/dmi/id/sys_vendor", "A Cloud\n");
    put_text("/sys/bus/acpi/devices/QEMU0002:00/hid", "QEMU0002\n");
    assert_int_equal(look().kind, HED_GUEST_QEMU);
}

static void
qemu_is_known_by_its_device_tree(void **state)
{
    put_text("/sys/firmware/devicetree/base/fw-cfg@9020000/compatible", "qemu,fw-cfg-mmio");
    assert_int_equal(look().kind, HED_GUEST_QEMU);
}

static void
a_vsock_device_is_found_with_its_driver(void **state)
{
    put_text("/sys/bus/virtio/devices/virtio0/device", "0x0001\n");
    put_text("/sys/bus/virtio/devices/virtio0/driver/x", "");
    put_text("/sys/bus/virtio/devices/virtio1/device", "0x0013\n");
    assert_true(look().has_vsock);
    assert_false(look().vsock_driven);
    put_text("/sys/bus/virtio/devices/virtio1/driver/x", "");
    assert_true(look().vsock_driven);
}

static void
a_window_is_found_with_its_name(void **state)
{
    put_window(HED_WINDOW_MAGIC, HED_WINDOW_VERSION);

    const struct hed_guest_facts f = look();

    assert_int_equal(f.windows, 1);
    assert_int_equal(f.window[0].error, 0);
    assert_string_equal(f.window[0].header.name, "alpha");
    assert_true(f.file[0].is_open);
    assert_true(f.file[0].group[0]);
}

static void
lockdown_is_read(void **state)
{
    put_text("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
    assert_string_equal(look().lockdown, "");
    put_text("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    assert_string_equal(look().lockdown, "integrity");
}

/* ---- findings -------------------------------------------------------------------------------- */

static struct hed_doctor doctor;

/* The finding of that name; there must be one. */
static const struct hed_finding *
found(const char *name)
{
    for (size_t i = 0; i < doctor.count; i++)
        if (strcmp(doctor.findings[i].name, name) == 0)
            return &doctor.findings[i];
    fail_msg("no finding '%s'", name);
    return NULL;
}

static void
report(const struct hed_guest_facts *f, bool wanted)
{
    doctor.count = 0;
    hed_guest_report(&doctor, f, wanted);
}

static void
expect_finding(const char *name, enum hed_finding_level level, const char *text, const char *hint)
{
    const struct hed_finding *f = found(name);

    assert_int_equal(f->level, level);
    if (!strstr(f->text, text) || !strstr(f->hint, hint))
        fail_msg("%s / %s, not %s / %s", f->text, f->hint, text, hint);
}

static const struct hed_guest_facts qemu = {.kind = HED_GUEST_QEMU, .maker = "QEMU"};

static void
other_machines_hear_nothing_or_little(void **state)
{
    const struct hed_guest_facts cloud = {.kind = HED_GUEST_UNKNOWN, .maker = "A Cloud"};

    report(&(struct hed_guest_facts){0}, false);
    assert_int_equal(doctor.count, 0);
    report(&cloud, false);
    assert_int_equal(doctor.count, 1);
    expect_finding("guest", HED_FINDING_OK, "made by A Cloud", "");
}

static void
a_host_with_the_setting_is_warned(void **state)
{
    report(&(struct hed_guest_facts){0}, true);
    expect_finding("guest", HED_FINDING_WARN, "does not look like a guest", "shm:PATH");
    expect_finding("vsock", HED_FINDING_FAIL, "no vsock device", "vhost-user-vsock-pci");
}

static void
missing_devices_are_bad_only_if_wanted(void **state)
{
    struct hed_guest_facts f = qemu;

    report(&qemu, false);
    assert_int_equal(doctor.count, 1);
    expect_finding("guest", HED_FINDING_OK, "without the devices", "heddle vm qemu-args NAME");
    f.has_vsock = f.vsock_driven = true;
    report(&f, false);
    expect_finding("window", HED_FINDING_OK, "no window", "-device ivshmem-plain,memdev=");
    f = qemu;
    f.windows = 1;
    report(&f, false);
    expect_finding("vsock", HED_FINDING_OK, "no vsock device", "heddle vm qemu-args NAME");
    report(&qemu, true);
    expect_finding("vsock", HED_FINDING_FAIL, "no vsock device",
                   "-device vhost-user-vsock-pci,chardev=heddle-vsock");
    expect_finding("window", HED_FINDING_WARN, "no window",
                   "size=1G,share=on -device ivshmem-plain,memdev=heddle-window");
}

static void
a_vsock_says_how_far_it_gets(void **state)
{
    struct hed_guest_facts f = qemu;

    f.has_vsock = true;
    report(&f, true);
    expect_finding("vsock", HED_FINDING_FAIL, "no driver", "vmw_vsock_virtio_transport");
    f.vsock_driven = f.was_asked = true;
    report(&f, true);
    expect_finding("vsock", HED_FINDING_OK, "answers at port 7717", "");
    f.answer = HED_EIO;
    (void)snprintf(f.reason, sizeof f.reason, "refused");
    report(&f, true);
    expect_finding("vsock", HED_FINDING_FAIL, "port 7717: refused", "QEMU must be restarted");
}

static void
windows_are_described(void **state)
{
    struct hed_guest_facts f = qemu;

    f.windows = 1;
    f.window[0] = (struct hed_window_device){
        .slot = "0000:00:05.0",
        .size = 1u << 30,
        .header = {.magic = "HEDDLEV", .version = HED_WINDOW_VERSION, .name = "alpha"}};
    report(&f, true);
    expect_finding("window", HED_FINDING_OK, "0000:00:05.0: 1024 MiB; the host calls this guest",
                   "");
    f.window[0].header.version++;
    report(&f, true);
    expect_finding("window", HED_FINDING_WARN, "version 2", "same version");
    memset(&f.window[0].header, 0, sizeof f.window[0].header);
    report(&f, true);
    expect_finding("window", HED_FINDING_OK, "is not heddle's", "");
    f.window[0].error = HED_EIO;
    report(&f, true);
    expect_finding("window", HED_FINDING_WARN, "cannot be used", "dmesg");
}

static void
refused_windows_say_who_may_use_them(void **state)
{
    struct hed_guest_facts f = qemu;

    f.windows = 1;
    f.window[0] = (struct hed_window_device){.slot = "0000:00:05.0", .error = HED_EACCESS};
    f.file[0] = (struct hed_guest_file){.mode = 0600, .group = "root", .is_of_root = true};
    report(&f, true);
    expect_finding("window", HED_FINDING_WARN, "mode 0600, group root", "60-heddle-window.rules");
    f.file[0] = (struct hed_guest_file){.mode = 0660, .group = "heddle"};
    report(&f, true);
    expect_finding("window", HED_FINDING_WARN, "group heddle", "usermod -aG heddle USER");
    f.file[0].is_open = true;
    (void)snprintf(f.lockdown, sizeof f.lockdown, "integrity");
    report(&f, true);
    expect_finding("window", HED_FINDING_WARN, "locked down (integrity)", "secure boot");
    f.lockdown[0] = '\0';
    report(&f, true);
    expect_finding("window", HED_FINDING_WARN, "cannot be mapped", "security module");
    /* A device of somebody else does not concern this user. */
    report(&f, false);
    assert_int_equal(found("window")->level, HED_FINDING_OK);
    f.has_vsock = f.vsock_driven = f.was_asked = true;
    report(&f, false);
    assert_int_equal(found("window")->level, HED_FINDING_WARN);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_bare_machine_is_no_guest, make_machine),
    cmocka_unit_test_setup(guests_of_others_are_known, make_machine),
    cmocka_unit_test_setup(guests_with_virtio_are_known, make_machine),
    cmocka_unit_test_setup(qemu_is_known_by_its_name, make_machine),
    cmocka_unit_test_setup(qemu_is_known_by_its_devices_in_acpi, make_machine),
    cmocka_unit_test_setup(qemu_is_known_by_its_device_tree, make_machine),
    cmocka_unit_test_setup(a_vsock_device_is_found_with_its_driver, make_machine),
    cmocka_unit_test_setup(a_window_is_found_with_its_name, make_machine),
    cmocka_unit_test_setup(lockdown_is_read, make_machine),
    cmocka_unit_test(other_machines_hear_nothing_or_little),
    cmocka_unit_test(a_host_with_the_setting_is_warned),
    cmocka_unit_test(missing_devices_are_bad_only_if_wanted),
    cmocka_unit_test(a_vsock_says_how_far_it_gets),
    cmocka_unit_test(windows_are_described),
    cmocka_unit_test(refused_windows_say_who_may_use_them),
};

HED_UNIT_MAIN(tests)
