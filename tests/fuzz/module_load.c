/* Fuzz target: images as programs give them to cuModuleLoadData, and linking.
 *
 * An image has no length of its own: the driver believes its header, as CUDA does. So the bytes are
 * wrapped: as PTX text with an end, or as the contents of a fat binary whose header has the right
 * size, or they are an ELF file that is all there. The first byte chooses.
 */
#include "harness/fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kernel/fatbin/fatbin.h"
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

/* Does a magic number say that more bytes follow than the input may have? */
static bool
has_header(const unsigned char *image)
{
    static const uint32_t magics[] = {HED_FATBIN_MAGIC, HED_FATBIN_WRAPPER_MAGIC};

    return memcmp(image, ELFMAG, SELFMAG) == 0 || memcmp(image, &magics[0], 4) == 0 ||
           memcmp(image, &magics[1], 4) == 0;
}

/* Is everything there that the headers name? */
static bool
is_whole_elf(const unsigned char *image, size_t size)
{
    Elf64_Ehdr h;

    if (size < sizeof h || memcmp(image, ELFMAG, SELFMAG) != 0)
        return false;
    memcpy(&h, image, sizeof h);
    if (!hed_range_fits(h.e_phoff, (uint64_t)h.e_phnum * h.e_phentsize, size) ||
        !hed_range_fits(h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize, size))
        return false;
    for (unsigned i = 0; i < h.e_shnum && h.e_shentsize == sizeof(Elf64_Shdr); i++) {
        Elf64_Shdr s;

        memcpy(&s, image + h.e_shoff + i * sizeof s, sizeof s);
        if (s.sh_type != SHT_NOBITS && !hed_range_fits(s.sh_offset, s.sh_size, size))
            return false;
    }
    return true;
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
    switch (data[0] % 4) {
    case 0:
        memcpy(image, data + 1, size - 1);
        if (!has_header(image))
            load_module(image);
        break;
    case 1:
        memcpy(image, &magic, 4);
        memcpy(image + 4, words, 4);
        memcpy(image + 8, &length, 8);
        memcpy(image + HED_FATBIN_HEADER_SIZE, data + 1, size - 1);
        load_module(image);
        break;
    case 3:
        memcpy(image, data + 1, size - 1);
        if (is_whole_elf(image, size - 1))
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
