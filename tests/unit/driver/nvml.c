/* NVML on the soft driver, and what processes share for it. */
#include "harness/unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitize.h"
#include "driver/shared.h"
#include "unit/driver/fake.h"

#define nvml(f, call, ...) ((f)->layer->nvml->call((f)->layer, &(struct hed_##call){__VA_ARGS__}))

#define DEVICES 3
#define GIB (1ull << 30)

/* Devices that no other process and no other test has: their UUIDs contain our process id. */
static uint16_t generation;

static void
make_devices(struct hed_profile_device *out)
{
    const pid_t pid = getpid();

    for (int i = 0; i < DEVICES; i++) {
        fake_profile(&out[i], i);
        memcpy(out[i].uuid, &pid, sizeof pid);
        memcpy(&out[i].uuid[8], &generation, sizeof generation);
        out[i].uuid[15] = (uint8_t)(i + 1);
        out[i].index = (uint32_t)i;
        out[i].pci_bus = i + 1;
        out[i].profile.power_limit = 100000;
        out[i].profile.power_idle = 10000;
        out[i].profile.temperature_idle = 30;
        out[i].profile.temperature_slowdown = 90;
        out[i].profile.clock_sm = 1500;
        out[i].profile.pcie_generation = 4;
        snprintf(out[i].profile.brand, sizeof out[i].profile.brand, "tesla");
        snprintf(out[i].profile.architecture, sizeof out[i].profile.architecture, "hopper");
    }
}

/* The clock stands still, so that loads are the same on every computer. */
static uint64_t now = 1000 * HED_NS_PER_S;

static uint64_t
fake_now(void)
{
    return now;
}

/* A driver that sees only the last of the devices, with NVML started on it. */
static struct fake *
start_nvml(nvmlDevice_t *handles)
{
    struct hed_profile_device all[DEVICES];

    generation++;
    make_devices(all);

    struct fake *f = fake_create_with(&all[DEVICES - 1], 1);

    assert_int_equal(hed_shared_attach(f->driver, all, DEVICES), 0);
    hed_shared_clock(f->driver, fake_now);
    assert_int_equal(nvml(f, nvmlInit_v2, 0), NVML_SUCCESS);
    for (unsigned i = 0; i < DEVICES; i++)
        assert_int_equal(nvml(f, nvmlDeviceGetHandleByIndex_v2, i, &handles[i]), NVML_SUCCESS);
    return f;
}

static void
stop_nvml(struct fake *f)
{
    hed_shared_free(f->driver);
    fake_free(f);
}

static void
nothing_is_answered_before_init_and_after_shutdown(void **state)
{
    struct fake *f = fake_create(2);
    nvmlDevice_t h = NULL;
    unsigned n = 7;

    assert_int_equal(nvml(f, nvmlDeviceGetCount_v2, &n), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml(f, nvmlShutdown, 0), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvml(f, nvmlInit_v2, 0), NVML_SUCCESS);
    assert_int_equal(nvml(f, nvmlInit, 0), NVML_SUCCESS);
    assert_int_equal(nvml(f, nvmlDeviceGetCount_v2, &n), NVML_SUCCESS);
    assert_int_equal(n, 2);
    assert_int_equal(nvml(f, nvmlDeviceGetHandleByIndex_v2, 0, &h), NVML_SUCCESS);
    assert_int_equal(nvml(f, nvmlShutdown, 0), NVML_SUCCESS);
    assert_int_equal(nvml(f, nvmlDeviceGetIndex, h, &n), NVML_SUCCESS);
    assert_int_equal(nvml(f, nvmlShutdown, 0), NVML_SUCCESS);
    assert_int_equal(nvml(f, nvmlDeviceGetIndex, h, &n), NVML_ERROR_UNINITIALIZED);
    stop_nvml(f);
}

static void
confidential_computing_is_off(void **state)
{
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);
    nvmlSystemConfComputeSettings_v1_t settings = {.version = 7, .ccFeature = 7};
    nvmlConfComputeSystemState_t now_state = {7, 7, 7};

    assert_int_equal(nvml(f, nvmlSystemGetConfComputeSettings, &settings),
                     NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    settings.version = sizeof settings | 1u << 24;
    assert_int_equal(nvml(f, nvmlSystemGetConfComputeSettings, &settings), NVML_SUCCESS);
    assert_int_equal(settings.ccFeature, 0);
    assert_int_equal(nvml(f, nvmlSystemGetConfComputeSettings, NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml(f, nvmlSystemGetConfComputeState, &now_state), NVML_SUCCESS);
    assert_int_equal(now_state.ccFeature, 0);
    stop_nvml(f);
}

static void
hidden_devices_are_shown(void **state)
{
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);
    unsigned n = 0;

    assert_int_equal(nvml(f, nvmlDeviceGetCount_v2, &n), NVML_SUCCESS);
    assert_int_equal(n, DEVICES);
    for (unsigned i = 0; i < DEVICES; i++) {
        assert_int_equal(nvml(f, nvmlDeviceGetIndex, h[i], &n), NVML_SUCCESS);
        assert_int_equal(n, i);
    }
    assert_int_equal(nvml(f, nvmlDeviceGetHandleByIndex_v2, DEVICES, &h[0]),
                     NVML_ERROR_INVALID_ARGUMENT);
    stop_nvml(f);
}

static void
what_is_no_handle_is_refused(void **state)
{
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);
    unsigned n = 7;
    const uintptr_t bad[] = {0,
                             1,
                             (uintptr_t)-1,
                             (uintptr_t)h[0] + 1,
                             (uintptr_t)h[0] - sizeof(struct hed_profile_device),
                             (uintptr_t)h[0] + DEVICES * sizeof(struct hed_profile_device),
                             (uintptr_t)&n};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(nvml(f, nvmlDeviceGetIndex, (nvmlDevice_t)bad[i], &n),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvml(f, nvmlDeviceGetSerial, (nvmlDevice_t)bad[i], (char *)&n, 4),
                         NVML_ERROR_INVALID_ARGUMENT);
    }
    assert_int_equal(nvml(f, nvmlDeviceGetIndex, h[0], NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(n, 7);
    stop_nvml(f);
}

static void
devices_are_found_by_every_name(void **state)
{
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);
    static const char *const buses[] = {"0000:02:00.0", "00000000:02:00.0", "0:2:0.0", "02:00.0",
                                        "0000:02:00"};
    nvmlDevice_t found = NULL;
    nvmlPciInfo_t pci;
    char uuid[96];
    CUuuid cuda;
    char text[HED_PROFILE_UUID_TEXT];

    assert_int_equal(nvml(f, nvmlDeviceGetUUID, h[1], uuid, sizeof uuid), NVML_SUCCESS);
    assert_int_equal(nvml(f, nvmlDeviceGetHandleByUUID, uuid, &found), NVML_SUCCESS);
    assert_ptr_equal(found, h[1]);
    assert_int_equal(nvml(f, nvmlDeviceGetUUID, h[1], uuid, 40), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(nvml(f, nvmlDeviceGetHandleByUUID, "GPU-1", &found), NVML_ERROR_NOT_FOUND);
    for (size_t i = 0; i < sizeof buses / sizeof *buses; i++) {
        found = NULL;
        assert_int_equal(nvml(f, nvmlDeviceGetHandleByPciBusId_v2, buses[i], &found), NVML_SUCCESS);
        assert_ptr_equal(found, h[1]);
    }
    assert_int_equal(nvml(f, nvmlDeviceGetHandleByPciBusId_v2, "0:2:0.1", &found),
                     NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvml(f, nvmlDeviceGetHandleByPciBusId_v2, "x", &found), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvml(f, nvmlDeviceGetSerial, h[1], uuid, sizeof uuid), NVML_SUCCESS);
    assert_int_equal(nvml(f, nvmlDeviceGetHandleBySerial, uuid, &found), NVML_SUCCESS);
    assert_int_equal(nvml(f, nvmlDeviceGetHandleBySerial, "1", &found), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvml(f, nvmlDeviceGetPciInfo_v3, h[1], &pci), NVML_SUCCESS);
    assert_string_equal(pci.busId, "00000000:02:00.0");
    assert_string_equal(pci.busIdLegacy, "0000:02:00.0");

    /* CUDA's device 0 is the last one, and CUDA and NVML agree about it. */
    assert_int_equal(fake_call(f, cuInit, 0), CUDA_SUCCESS);
    assert_int_equal(fake_call(f, cuDeviceGetUuid, &cuda, 0), CUDA_SUCCESS);
    hed_profile_uuid_text((const uint8_t *)&cuda, text);
    assert_int_equal(nvml(f, nvmlDeviceGetUUID, h[DEVICES - 1], uuid, sizeof uuid), NVML_SUCCESS);
    assert_string_equal(uuid, text);
    stop_nvml(f);
}

static void
old_pci_structs_are_not_overrun(void **state)
{
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);
    union {
        nvmlPciInfo_t pci;
        unsigned char bytes[sizeof(nvmlPciInfo_t)];
    } u;

    memset(&u, 0xee, sizeof u);
    assert_int_equal(nvml(f, nvmlDeviceGetPciInfo_v2, h[0], &u.pci), NVML_SUCCESS);
    assert_int_equal(u.pci.bus, 1);
    for (size_t i = 52; i < sizeof u; i++)
        assert_int_equal(u.bytes[i], 0xee);
    stop_nvml(f);
}

static unsigned long long
used(struct fake *f, nvmlDevice_t h)
{
    nvmlMemory_t memory = {0};

    assert_int_equal(nvml(f, nvmlDeviceGetMemoryInfo, h, &memory), NVML_SUCCESS);
    assert_true(memory.total == FAKE_MEMORY);
    assert_true(memory.used + memory.free == memory.total);
    return memory.used;
}

/* Another process: uses memory of its device 0, reports that it has, and waits. */
static pid_t
other_process(struct hed_profile_device *all, size_t device, uint64_t bytes, int *keep)
{
    int ready[2];
    int end[2];
    char c = 0;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);

    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct fake *f = fake_create_with(&all[device], 1);

        close(end[1]);
        if (hed_shared_attach(f->driver, all, DEVICES) != 0)
            _exit(1);
        hed_shared_memory(f->driver, 0, bytes);
        (void)!write(ready[1], &c, 1);
        (void)!read(end[0], &c, 1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    close(end[0]);
    *keep = end[1];
    return pid;
}

static void
memory_of_all_processes_counts_while_they_live(void **state)
{
    struct hed_profile_device all[DEVICES];
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);
    nvmlProcessInfo_t info[4];
    unsigned n = 0;
    int keep;

    if (HED_TSAN)
        skip(); /* in the child a second driver finds no room beside ThreadSanitizer's addresses */
    make_devices(all);
    assert_true(used(f, h[2]) == 0);
    assert_int_equal(nvml(f, nvmlDeviceGetComputeRunningProcesses_v3, h[2], &n, NULL),
                     NVML_SUCCESS);
    hed_shared_memory(f->driver, 0, GIB);
    assert_true(used(f, h[2]) == GIB);
    assert_true(used(f, h[0]) == 0);

    const pid_t pid = other_process(all, 2, 2 * GIB, &keep);

    assert_true(used(f, h[2]) == 3 * GIB);
    assert_true(used(f, h[1]) == 0);
    n = 1;
    assert_int_equal(nvml(f, nvmlDeviceGetComputeRunningProcesses_v3, h[2], &n, info),
                     NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(n, 2);
    assert_int_equal(nvml(f, nvmlDeviceGetComputeRunningProcesses_v3, h[2], &n, info),
                     NVML_SUCCESS);
    for (unsigned i = 0; i < 2; i++)
        assert_true(info[i].usedGpuMemory == (info[i].pid == (unsigned)pid ? 2 * GIB : GIB));
    assert_true(info[0].pid != info[1].pid);
    close(keep);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(used(f, h[2]) == GIB);
    hed_shared_memory(f->driver, 0, 0);
    assert_int_equal(nvml(f, nvmlDeviceGetComputeRunningProcesses_v3, h[2], &n, info),
                     NVML_SUCCESS);
    assert_int_equal(n, 0);
    stop_nvml(f);
}

static void
more_than_there_is_cannot_be_used(void **state)
{
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);

    hed_shared_memory(f->driver, 0, UINT64_MAX);
    assert_true(used(f, h[2]) == FAKE_MEMORY);
    hed_shared_memory(f->driver, 1, GIB);
    hed_shared_memory(f->driver, -1, GIB);
    assert_true(used(f, h[0]) == 0 && used(f, h[1]) == 0);
    stop_nvml(f);
}

static void
work_shows_as_use_power_and_heat(void **state)
{
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);
    nvmlUtilization_t use = {7, 7};
    unsigned long long energy[2] = {0};
    unsigned power = 0;
    unsigned heat = 0;

    assert_int_equal(nvml(f, nvmlDeviceGetUtilizationRates, h[2], &use), NVML_SUCCESS);
    assert_int_equal(use.gpu, 0);
    assert_int_equal(nvml(f, nvmlDeviceGetPowerUsage, h[2], &power), NVML_SUCCESS);
    assert_int_equal(power, 10000);
    assert_int_equal(nvml(f, nvmlDeviceGetTotalEnergyConsumption, h[2], &energy[0]), NVML_SUCCESS);
    /* Longer than the history: all of it was work. */
    hed_shared_busy(f->driver, 0, 10 * HED_NS_PER_S, now);
    assert_int_equal(nvml(f, nvmlDeviceGetUtilizationRates, h[2], &use), NVML_SUCCESS);
    assert_in_range(use.gpu, 99, 100);
    assert_int_equal(nvml(f, nvmlDeviceGetPowerUsage, h[2], &power), NVML_SUCCESS);
    assert_in_range(power, 80000, 100000);
    assert_int_equal(nvml(f, nvmlDeviceGetTemperature, h[2], NVML_TEMPERATURE_GPU, &heat),
                     NVML_SUCCESS);
    assert_in_range(heat, 60, 90);
    assert_int_equal(nvml(f, nvmlDeviceGetTotalEnergyConsumption, h[2], &energy[1]), NVML_SUCCESS);
    assert_true(energy[1] - energy[0] >= 900000);
    assert_int_equal(nvml(f, nvmlDeviceGetUtilizationRates, h[1], &use), NVML_SUCCESS);
    assert_int_equal(use.gpu, 0);
    stop_nvml(f);
}

static void
half_a_second_of_work_is_half_a_load(void **state)
{
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);

    now = 1000 * HED_NS_PER_S + HED_NS_PER_S / 2;
    for (int i = 0; i < 500; i++)
        hed_shared_busy(f->driver, 0, 1000000, now);
    /* Half of the current second, and all of the last one. */
    assert_int_equal(hed_shared_load(f->driver, 2), 33);
    now = 1001 * HED_NS_PER_S;
    assert_int_equal(hed_shared_load(f->driver, 2), 50);
    now = 1002 * HED_NS_PER_S;
    assert_int_equal(hed_shared_load(f->driver, 2), 0);
    stop_nvml(f);
}

static void
there_is_always_room_for_new_devices(void **state)
{
    /* More drivers than the file has slots for. */
    for (int i = 0; i < 100; i++) {
        nvmlDevice_t h[DEVICES];
        struct fake *f = start_nvml(h);

        hed_shared_memory(f->driver, 0, GIB);
        assert_true(used(f, h[2]) == GIB);
        assert_true(hed_shared_worked(f->driver, 2) == 0);
        hed_shared_busy(f->driver, 0, 1000000, now);
        assert_true(hed_shared_worked(f->driver, 2) == 1000000);
        stop_nvml(f);
    }
}

static void
enums_and_versions_are_checked(void **state)
{
    nvmlDevice_t h[DEVICES];
    struct fake *f = start_nvml(h);
    nvmlMemory_v2_t memory = {.version = sizeof memory | 1u << 24};
    nvmlFieldValue_t fields[2] = {{.fieldId = 186}, {.fieldId = 9999}};
    nvmlDeviceArchitecture_t arch = 0;
    unsigned n = 0;

    assert_int_equal(nvml(f, nvmlDeviceGetMemoryInfo_v2, h[0], &memory),
                     NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    memory.version = sizeof memory | 2u << 24;
    assert_int_equal(nvml(f, nvmlDeviceGetMemoryInfo_v2, h[0], &memory), NVML_SUCCESS);
    assert_true(memory.total == FAKE_MEMORY);
    assert_int_equal(nvml(f, nvmlDeviceGetClockInfo, h[0], NVML_CLOCK_SM, &n), NVML_SUCCESS);
    assert_int_equal(n, 1500);
    assert_int_equal(nvml(f, nvmlDeviceGetClockInfo, h[0], NVML_CLOCK_COUNT, &n),
                     NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml(f, nvmlDeviceGetTemperatureThreshold, h[0], 7, &n),
                     NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(nvml(f, nvmlDeviceGetTemperatureThreshold, h[0], 8, &n),
                     NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvml(f, nvmlDeviceGetFanSpeed, h[0], &n), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(nvml(f, nvmlDeviceGetArchitecture, h[0], &arch), NVML_SUCCESS);
    assert_int_equal(arch, 9);
    assert_int_equal(nvml(f, nvmlDeviceGetFieldValues, h[0], 2, fields), NVML_SUCCESS);
    assert_int_equal(fields[0].nvmlReturn, NVML_SUCCESS);
    assert_int_equal(fields[0].value.uiVal, 10000);
    assert_int_equal(fields[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    stop_nvml(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_answered_before_init_and_after_shutdown),
    cmocka_unit_test(confidential_computing_is_off),
    cmocka_unit_test(hidden_devices_are_shown),
    cmocka_unit_test(what_is_no_handle_is_refused),
    cmocka_unit_test(devices_are_found_by_every_name),
    cmocka_unit_test(old_pci_structs_are_not_overrun),
    cmocka_unit_test(memory_of_all_processes_counts_while_they_live),
    cmocka_unit_test(more_than_there_is_cannot_be_used),
    cmocka_unit_test(work_shows_as_use_power_and_heat),
    cmocka_unit_test(half_a_second_of_work_is_half_a_load),
    cmocka_unit_test(there_is_always_room_for_new_devices),
    cmocka_unit_test(enums_and_versions_are_checked),
};

HED_UNIT_MAIN(tests)
