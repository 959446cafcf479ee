/* Copies to and from variables of kernels, also managed ones. See copies.h. */
#include "copies.h"

#include <string.h>

#include "image.h"

cudaError_t cudaGetSymbolAddress(void **p, const void *symbol);
cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol);
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t count, size_t offset,
                               cudaMemcpyKind kind);
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t count,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t count, size_t offset,
                                 cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t count, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t s);
char __cudaInitModule(void **handle);

enum { SIZE = 256 }; /* bytes of each variable */

/* Writes the sum of the first numbers of all three variables to where p points. */
static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .global .align 4 .b8 plain[256];\n"
                          ".visible .const .align 4 .b8 fixed[256];\n"
                          ".visible .global .attribute(.managed) .align 4 .b8 shared[256];\n"
                          ".visible .entry sum(.param .u64 p)\n"
                          "{\n"
                          ".reg .b64 %p; .reg .b32 %a, %b, %c;\n"
                          "ld.param.u64 %p, [p];\n"
                          "ld.global.u32 %a, [plain];\n"
                          "ld.const.u32 %b, [fixed];\n"
                          "ld.global.u32 %c, [shared];\n"
                          "add.s32 %a, %a, %b;\n"
                          "add.s32 %a, %a, %c;\n"
                          "st.global.u32 [%p], %a;\n"
                          "ret;\n"
                          "}\n";

static char stub, plain[SIZE], fixed[SIZE]; /* by whose addresses the program knows them */
static void *shared;                        /* by whose value */

static void
to_and_from(const void *symbol, enum place_kind k, bool async, bool by_default)
{
    const cudaMemcpyKind to = by_default ? cudaMemcpyDefault : copies_kind(DEVICE, k);
    const cudaMemcpyKind back = by_default ? cudaMemcpyDefault : copies_kind(k, DEVICE);
    unsigned char want[ROOM];

    expect_ok(async ? cudaMemcpyToSymbolAsync(symbol, copies.from[k], 100, 8, to, copies.stream)
                    : cudaMemcpyToSymbol(symbol, copies.from[k], 100, 8, to),
              "cudaMemcpyToSymbol");
    copies_clear(copies.to[k]);
    expect_ok(async ? cudaMemcpyFromSymbolAsync(copies.to[k], symbol, 90, 12, back, copies.stream)
                    : cudaMemcpyFromSymbol(copies.to[k], symbol, 90, 12, back),
              "cudaMemcpyFromSymbol");
    memset(want, 0xee, sizeof want);
    for (size_t i = 0; i < 90; i++)
        want[i] = copies_byte(i + 4);
    expect(memcmp(copies_look(copies.to[k]), want, ROOM) == 0, "what came back");
}

static void
kernels_see_it(bool by_host)
{
    const unsigned one = 1, twenty = 20, many = 300, sum = 321;
    unsigned got = 0;
    unsigned *p = (unsigned *)copies.to[DEVICE];
    void *args[] = {&p};

    /* The host does not see the managed variables of a device on a server. */
    if (by_host)
        *(unsigned *)shared = many;
    else
        expect_ok(cudaMemcpyToSymbol(shared, &many, sizeof many, 0, cudaMemcpyHostToDevice),
                  "shared");
    expect_ok(cudaMemcpyToSymbol(plain, &one, sizeof one, 0, cudaMemcpyHostToDevice), "plain");
    expect_ok(cudaMemcpyToSymbol(fixed, &twenty, sizeof twenty, 0, cudaMemcpyHostToDevice),
              "fixed");
    expect_ok(cudaLaunchKernel(&stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL),
              "cudaLaunchKernel");
    expect_ok(cudaMemcpy(&got, p, sizeof got, cudaMemcpyDeviceToHost), "cudaMemcpy");
    expect(got == sum, "the kernel's sum");
}

static void **
register_code(void)
{
    void **handle = __cudaRegisterFatBinary(image_wrap(ptx));

    image_kernel(handle, &stub, "sum");
    image_variable(handle, plain, "plain", SIZE);
    __cudaRegisterVar(handle, fixed, "fixed", "fixed", 0, SIZE, 1, 0);
    __cudaRegisterManagedVar(handle, &shared, "shared", "shared", 0, SIZE, 0, 0);
#if EDITION >= 10
    __cudaRegisterFatBinaryEnd(handle);
#endif
    (void)__cudaInitModule(handle);
    expect(shared != NULL, "the managed variable has an address");
    return handle;
}

void
copies_of_symbols(void)
{
    void **handle = register_code();
    const void *const symbols[] = {plain, fixed, shared};
    void *at = NULL;
    size_t size = 0;

    for (int i = 0; i < 3; i++) {
        expect_ok(cudaGetSymbolSize(&size, symbols[i]), "cudaGetSymbolSize");
        expect(size == SIZE, "size");
        expect_ok(cudaGetSymbolAddress(&at, symbols[i]), "cudaGetSymbolAddress");
        expect(at != NULL && (i < 2 || at == shared), "address");
        for (int k = 0; k < PLACES; k++)
            for (int how = 0; how < 4; how++)
                to_and_from(symbols[i], k, how & 1, how & 2);
    }
    kernels_see_it(false);
    __cudaUnregisterFatBinary(handle);
}

void
managed_symbols(void)
{
    void **handle = register_code();

    kernels_see_it(true);
    __cudaUnregisterFatBinary(handle);
}
