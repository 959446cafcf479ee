/* Fuzz target: images as programs give them to cuModuleLoadData, and linking.
 *
 * An image has no length of its own: the driver believes its header, as CUDA does. So the bytes are
 * wrapped: as PTX text with an end, or as the contents of a fat binary whose header has the right
 * size. The first byte chooses.
 */
#include "harness/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "unit/driver/fake.h"

static struct fake *fake;

static void
set_up_device(void)
{
    if (fake)
        return;
    fake = fake_create(1);
    (void)fake_use_primary(fake, 0);
}

static void
load_module(const void *image)
{
    CUmodule m = NULL;
    CUfunction f;
    CUdeviceptr at;
    size_t size;
    char log[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};

    if (fake_call(fake, cuModuleLoadDataEx, &m, image, 2, options, values) != CUDA_SUCCESS)
        return;
    (void)fake_call(fake, cuModuleGetFunction, &f, m, "fake_copy");
    (void)fake_call(fake, cuModuleGetGlobal_v2, &at, &size, m, "fake_global");
    if (fake_call(fake, cuModuleUnload, m) != CUDA_SUCCESS)
        __builtin_trap();
}

/* Links two texts, which the first zero byte separates. */
static void
link_texts(const char *text, size_t size)
{
    const size_t first = strnlen(text, size);
    CUlinkState l = NULL;
    void *image;
    size_t bytes;

    if (fake_call(fake, cuLinkCreate_v2, 0, NULL, NULL, &l) != CUDA_SUCCESS)
        __builtin_trap();
    (void)fake_call(fake, cuLinkAddData_v2, l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, first,
                    "a", 0, NULL, NULL);
    if (first < size)
        (void)fake_call(fake, cuLinkAddData_v2, l, CU_JIT_INPUT_PTX,
                        (void *)(uintptr_t)(text + first + 1), size - first - 1, "b", 0, NULL,
                        NULL);
    if (fake_call(fake, cuLinkComplete, l, &image, &bytes) == CUDA_SUCCESS)
        load_module(image);
    (void)fake_call(fake, cuLinkDestroy, l);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint32_t magic = HED_FATBIN_MAGIC;
    const uint16_t words[] = {1, HED_FATBIN_HEADER_SIZE};
    const uint64_t length = size ? size - 1 : 0;
    unsigned char *image;

    set_up_device();
    if (size == 0)
        return 0;
    image = calloc(1, size + HED_FATBIN_HEADER_SIZE + 1);
    if (!image)
        return 0;
    switch (data[0] % 3) {
    case 0:
        memcpy(image, data + 1, size - 1);
        load_module(image);
        break;
    case 1:
        memcpy(image, &magic, 4);
        memcpy(image + 4, words, 4);
        memcpy(image + 8, &length, 8);
        memcpy(image + HED_FATBIN_HEADER_SIZE, data + 1, size - 1);
        load_module(image);
        break;
    default:
        memcpy(image, data + 1, size - 1);
        link_texts((const char *)image, size);
        break;
    }
    free(image);
    return 0;
}
