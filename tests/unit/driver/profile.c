/* Device profiles: the files in share/, the setting `gpu`, CUDA_VISIBLE_DEVICES. */
#include "harness/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "driver/profile.h"
#include "gen/cuda_abi.h"

static struct hed_profile_device devices[HED_PROFILE_DEVICES_MAX];
static struct hed_why why;

static size_t
make(const char *setting)
{
    size_t count = 0;
    const int err = hed_profile_devices(setting, devices, HED_PROFILE_DEVICES_MAX, &count, &why);

    if (err)
        fail_msg("%s: %s", setting, why.text);
    return count;
}

static int
refused(const char *setting)
{
    size_t count = 77;

    why.text[0] = '\0';

    const int err = hed_profile_devices(setting, devices, HED_PROFILE_DEVICES_MAX, &count, &why);

    assert_true(err < 0);
    assert_true(count == 77);
    assert_true(why.text[0] != '\0');
    return err;
}

static int
attribute(const struct hed_profile_device *d, CUdevice_attribute a)
{
    assert_true(hed_profile_has(&d->profile, a));
    return d->profile.attributes[a];
}

static void
every_profile_is_a_device(void **state)
{
    static const char *const names[] = {"generic",  "t4",      "a100",   "a100-40g",
                                        "a100-80g", "rtx4090", "l4",     "h100",
                                        "h200",     "b200",    "rtx5090"};
    char setting[64];
    char folder[4096];

    assert_int_equal(hed_profiles_folder(folder, sizeof folder), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(setting, sizeof setting, "cpu:%s", names[i]);
        assert_true(make(setting) == 1);

        const struct hed_profile *p = &devices[0].profile;

        assert_string_equal(p->short_name, names[i]);
        assert_int_equal(attribute(&devices[0], CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                         p->major);
        assert_int_equal(attribute(&devices[0], CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
                         p->clock_sm * 1000);
        assert_int_equal((unsigned)attribute(&devices[0], CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID),
                         p->pci_device_id);
        assert_true(
            attribute(&devices[0], CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) <=
            attribute(&devices[0], CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
        assert_true(p->power_idle < p->power_limit);
        assert_true(p->temperature_idle < p->temperature_slowdown);
        assert_true(p->brand[0] && p->architecture[0] && p->vbios[0]);
        /* CUDA 13.0 has attributes up to 147, except for a few that were withdrawn. */
        for (unsigned a = 1; a < 148; a++)
            if (!hed_profile_has(p, a))
                fail_msg("%s has no attribute %u", names[i], a);
    }
}

static void
every_file_is_a_profile(void **state)
{
    char folder[4096];
    size_t n = 0;

    assert_int_equal(hed_profiles_folder(folder, sizeof folder), 0);

    DIR *dir = opendir(folder);

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        char setting[300];

        if (e->d_name[0] == '.' || strcmp(e->d_name, "base.json") == 0)
            continue;
        assert_non_null(strstr(e->d_name, ".json"));
        snprintf(setting, sizeof setting, "cpu:%.*s", (int)strlen(e->d_name) - 5, e->d_name);
        make(setting);
        n++;
    }
    closedir(dir);
    assert_true(n >= 10);
}

/* Libraries have machine code for the A100, which runs on the CPU; that of newer devices does
 * not. */
static void
plain_cpu_is_an_a100_that_takes_ptx_of_every_kind(void **state)
{
    assert_true(make("cpu") == 1);
    assert_string_equal(devices[0].profile.name, "heddle CPU GPU (generic)");
    assert_int_equal(10 * devices[0].profile.major + devices[0].profile.minor, 80);
    assert_int_equal(devices[0].profile.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT], 108);
    assert_true(devices[0].profile.accepts_newer_ptx);
    assert_true(devices[0].profile.memory == 16ull << 30);
    assert_true(make("auto") == 1);
    assert_string_equal(devices[0].profile.short_name, "generic");
    make("cpu:h100");
    assert_false(devices[0].profile.accepts_newer_ptx);
}

static void
a_list_makes_devices_in_its_order(void **state)
{
    assert_true(make("cpu:h100x8") == 8);
    assert_true(make("cpu:rtx4090x2,t4,rtx4090") == 4);
    assert_string_equal(devices[0].profile.short_name, "rtx4090");
    assert_string_equal(devices[2].profile.short_name, "t4");
    assert_string_equal(devices[3].profile.short_name, "rtx4090");
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(devices[i].index, i);
        assert_int_equal(devices[i].pci_bus, i + 1);
        assert_int_equal(attribute(&devices[i], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID), i + 1);
        for (unsigned k = 0; k < i; k++)
            assert_memory_not_equal(devices[i].uuid, devices[k].uuid, 16);
    }
    assert_true(make("cpu:t4x64") == 64);
}

static void
uuids_are_the_same_each_time(void **state)
{
    uint8_t first[16];
    char text[HED_PROFILE_UUID_TEXT];

    make("cpu:h100x2");
    memcpy(first, devices[1].uuid, sizeof first);
    make("cpu:h100x3");
    assert_memory_equal(devices[1].uuid, first, sizeof first);
    assert_int_equal(first[6] >> 4, 4);
    assert_int_equal(first[8] >> 6, 2);
    hed_profile_uuid_text(first, text);
    assert_int_equal(strlen(text), 40);
    assert_memory_equal(text, "GPU-", 4);
    make("cpu:h200x2");
    assert_memory_not_equal(devices[1].uuid, first, sizeof first);
}

static void
bad_lists_are_refused(void **state)
{
    assert_int_equal(refused("cpu:h1000"), HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "no device 'h1000'; choose from a100-40g, "));
    assert_int_equal(refused("cpu:h1000x2"), HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "'h1000'"));
    assert_int_equal(refused("cpu:h100x0"), HED_ELIMIT);
    assert_int_equal(refused("cpu:h100x65"), HED_ELIMIT);
    assert_int_equal(refused("cpu:h100x99999999999999999999"), HED_ELIMIT);
    assert_int_equal(refused("cpu:h100x64,t4"), HED_ELIMIT);
    assert_int_equal(refused("cpu:,t4"), HED_EINVAL);
    assert_int_equal(refused("cpu:t4,"), HED_EINVAL);
    assert_int_equal(refused("cpu:.."), HED_EINVAL);
    assert_int_equal(refused("cpu:t 4"), HED_EINVAL);
    assert_int_equal(refused("cpu:/nonexistent/x.json"), HED_ENOTFOUND);
    assert_int_equal(refused("cpu:/"), HED_EINVAL);
    assert_int_equal(refused("cpu:base"), HED_EFORMAT);
    assert_non_null(strstr(why.text, "it has no name"));
}

/* Writes a file in the scratch folder; returns its path, which is valid until the next call. */
static const char *
file_of(const char *name, const char *text)
{
    static char path[1024];

    snprintf(path, sizeof path, "%s/%s", getenv("HED_SCRATCH"), name);

    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static void
a_file_of_ones_own_stands_on_ours(void **state)
{
    char setting[1100];

    snprintf(setting, sizeof setting, "cpu:%sx2",
             file_of("mine.json", "{\"base\": \"t4\", \"name\": \"Mine\", \"memory\": \"2G\", "
                                  "\"attributes\": {\"multiprocessor_count\": 3, "
                                  "\"tcc_driver\": null}}"));
    assert_true(make(setting) == 2);
    assert_string_equal(devices[1].profile.name, "Mine");
    assert_string_equal(devices[1].profile.short_name, "mine");
    assert_true(devices[1].profile.memory == 2ull << 30);
    assert_int_equal(devices[1].profile.major, 7);
    assert_int_equal(attribute(&devices[1], CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 3);
    assert_false(hed_profile_has(&devices[1].profile, CU_DEVICE_ATTRIBUTE_TCC_DRIVER));
}

static void
files_that_stand_on_themselves_are_refused(void **state)
{
    char setting[1100];

    snprintf(setting, sizeof setting, "cpu:%s", file_of("loop.json", "{\"base\": \"loop\"}"));
    assert_int_equal(refused(setting), HED_ELIMIT);
}

static int
no_base(void *arg, const char *base, struct hed_profile *p, struct hed_why *reason)
{
    hed_why_set(reason, "no base '%s'", base);
    return HED_ENOTFOUND;
}

static void
bad_text_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"", "f:1:"},
        {"{\"name\": \"a\",\n \"name\": \"b\"}", "f:2:"},
        {"[]", "f: it is not an object"},
        {"{\"nmae\": \"a\"}", "f: nmae is not a key of a profile"},
        {"{\"name\": 1}", "f: name is not text, empty or too long"},
        {"{\"name\": \"a\\n\"}", "f: name has characters that cannot be printed"},
        {"{\"memory\": -1}", "f: memory is not a size such as \"16G\""},
        {"{\"memory\": \"much\"}", "f: memory is not a size such as \"16G\""},
        {"{\"accepts_newer_ptx\": 1}", "f: accepts_newer_ptx is neither true nor false"},
        {"{\"compute_capability\": 9}", "f: compute_capability is not text such as \"8.9\""},
        {"{\"compute_capability\": \"9.0a\"}", "f: compute_capability is not text"},
        {"{\"attributes\": []}", "f: attributes is not an object"},
        {"{\"attributes\": {\"warps\": 1}}", "f: warps is not a device attribute"},
        {"{\"attributes\": {\"max\": 1}}", "f: max is not a device attribute"},
        {"{\"attributes\": {\"warp_size\": 1e3}}", "f: warp_size is not a number that fits"},
        {"{\"attributes\": {\"warp_size\": 2147483648}}", "f: warp_size is not a number"},
        {"{\"nvml\": 1}", "f: nvml is not an object"},
        {"{\"nvml\": {\"power\": 1}}", "f: power is not a key of \"nvml\""},
        {"{\"nvml\": {\"fans\": \"2\"}}", "f: fans is not a number that fits"},
        {"{\"nvml\": {\"pci_device_id\": \"0x100000000\"}}", "f: pci_device_id is not a number"},
        {"{\"base\": 1}", "f: base is not text"},
        {"{\"base\": \"x\"}", "no base 'x'"},
    };
    static struct hed_profile p;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memset(&p, 0, sizeof p);
        assert_true(hed_profile_parse(&p, rows[i].text, strlen(rows[i].text), "f", no_base, NULL,
                                      &why) < 0);
        assert_non_null(strstr(why.text, rows[i].says));
    }
}

static size_t
visible(const char *value)
{
    return hed_profile_visible(devices, make("cpu:h100x2,t4x2"), value);
}

static void
visible_devices_are_chosen_as_cuda_does(void **state)
{
    char text[HED_PROFILE_UUID_TEXT];
    char list[128];

    assert_true(visible(NULL) == 4);
    assert_true(visible("") == 0);
    assert_true(visible("-1") == 0);
    assert_true(visible("NoDevFiles") == 0);
    assert_true(visible("3,1") == 2);
    assert_int_equal(devices[0].index, 3);
    assert_int_equal(devices[1].index, 1);
    assert_true(visible("0,-1,1") == 1);
    assert_true(visible("2,4,1") == 1);
    assert_true(visible("0,1,0") == 0);
    assert_true(visible(" 1, 0") == 2);
    assert_int_equal(devices[0].index, 1);
    assert_true(visible("0,1,2,3,0") == 4);
    assert_true(visible("MIG-3") == 0);
    assert_true(visible("99999999999999999999999") == 0);

    make("cpu:h100x2,t4x2");
    hed_profile_uuid_text(devices[2].uuid, text);
    assert_true(visible(text) == 1);
    assert_int_equal(devices[0].index, 2);
    snprintf(list, sizeof list, "%.12s,0", text);
    assert_true(visible(list) == 2);
    assert_int_equal(devices[0].index, 2);
    assert_true(visible("GPU-") == 0);
    assert_true(visible("GPU-zz") == 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_profile_is_a_device),
    cmocka_unit_test(every_file_is_a_profile),
    cmocka_unit_test(plain_cpu_is_an_a100_that_takes_ptx_of_every_kind),
    cmocka_unit_test(a_list_makes_devices_in_its_order),
    cmocka_unit_test(uuids_are_the_same_each_time),
    cmocka_unit_test(bad_lists_are_refused),
    cmocka_unit_test(a_file_of_ones_own_stands_on_ours),
    cmocka_unit_test(files_that_stand_on_themselves_are_refused),
    cmocka_unit_test(bad_text_is_refused_with_the_reason),
    cmocka_unit_test(visible_devices_are_chosen_as_cuda_does),
};

HED_UNIT_MAIN(tests)
