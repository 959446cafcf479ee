/* Fuzz target: the text of a device profile. A profile that is accepted can be checked, and a
 * driver can compute with one that passes the check. */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "driver/profile.h"
#include "gen/cuda_abi.h"

/* A base profile with everything that a device needs, so that a short input can be a device. */
static int
load_base(void *arg, const char *base, struct hed_profile *p, struct hed_why *why)
{
    static const unsigned needed[][2] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 49152},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16},
    };

    if (strcmp(base, "base") != 0) {
        hed_why_set(why, "there is no base '%.64s'", base);
        return HED_ENOTFOUND;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        p->attributes[needed[i][0]] = (int)needed[i][1];
        p->has_attribute[needed[i][0] / 64] |= 1ull << needed[i][0] % 64;
    }
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hed_profile p;
    struct hed_why why = {""};

    memset(&p, 0, sizeof p);

    int err = hed_profile_parse(&p, (const char *)data, size, "input", load_base, NULL, &why);

    must(err <= 0);
    must(err == 0 || why.text[0] != '\0');
    /* In any case, texts are terminated. */
    must(strnlen(p.name, sizeof p.name) < sizeof p.name);
    must(strnlen(p.brand, sizeof p.brand) < sizeof p.brand);
    must(strnlen(p.architecture, sizeof p.architecture) < sizeof p.architecture);
    must(strnlen(p.vbios, sizeof p.vbios) < sizeof p.vbios);
    if (err)
        return 0;
    err = hed_profile_check(&p, "input", &why);
    must(err == 0 || (err == HED_EFORMAT && why.text[0] != '\0'));
    if (err)
        return 0;
    must(p.name[0] && p.major >= 5 && p.memory >= 1 << 20);
    must(p.attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE] == 32);
    must(p.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] > 0);
    must(p.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] == p.major);
    return 0;
}
