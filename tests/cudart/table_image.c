/* Device code for the table: PTX in a fat binary that is made here, and its registration with the
 * functions that a compiler's startup code calls. */
#include "table.h"

#include "fatbin.h"

char table_add, table_store, table_bounded, table_shared, table_missing;
char table_dev[64], table_const[64], table_lost[64];
char *table_managed;

/* add: p[i] += dev[i] for i < n. store: *p = 1. bounded: at most 64 threads. shared: has 32 KiB of
 * shared memory. */
const char table_ptx[] = ".version 7.0\n"
                         ".target sm_50\n"
                         ".address_size 64\n"
                         ".visible .global .align 4 .b8 dev[64];\n"
                         ".visible .const .align 4 .b8 constant[64];\n"
                         ".visible .global .attribute(.managed) .align 4 .b8 managed[64];\n"
                         ".visible .entry add(.param .u64 p, .param .u32 n)\n"
                         "{\n"
                         ".reg .pred %q;\n"
                         ".reg .b32 %i, %n, %a, %b;\n"
                         ".reg .b64 %p, %d, %o;\n"
                         "ld.param.u64 %p, [p];\n"
                         "ld.param.u32 %n, [n];\n"
                         "mov.u32 %i, %tid.x;\n"
                         "setp.ge.u32 %q, %i, %n;\n"
                         "@%q bra done;\n"
                         "mul.wide.u32 %o, %i, 4;\n"
                         "mov.u64 %d, dev;\n"
                         "add.s64 %d, %d, %o;\n"
                         "add.s64 %p, %p, %o;\n"
                         "ld.global.u32 %a, [%d];\n"
                         "ld.global.u32 %b, [%p];\n"
                         "add.s32 %a, %a, %b;\n"
                         "st.global.u32 [%p], %a;\n"
                         "done: ret;\n"
                         "}\n"
                         ".visible .entry store(.param .u64 p)\n"
                         "{\n"
                         ".reg .b64 %p;\n"
                         "ld.param.u64 %p, [p];\n"
                         "st.global.u32 [%p], 1;\n"
                         "ret;\n"
                         "}\n"
                         ".visible .entry bounded(.param .u64 p)\n"
                         ".maxntid 64, 1, 1\n"
                         "{\n"
                         "ret;\n"
                         "}\n"
                         ".visible .entry shared()\n"
                         "{\n"
                         ".shared .align 4 .b8 room[32768];\n"
                         ".reg .b32 %a;\n"
                         "mov.u32 %a, %tid.x;\n"
                         "st.shared.u32 [room], %a;\n"
                         "ret;\n"
                         "}\n";

static void **image_handle;

const void *
table_fatbin(void)
{
    static const struct image_wrapper *made;

    if (!made)
        made = image_wrap(table_ptx);
    return made;
}

static void
register_kernel(const char *address, const char *name)
{
    if (table_find("__cudaRegisterFunction")) {
        ((void (*)(void **, const char *, char *, const char *, int, void *, void *, void *, void *,
                   int *))table_function())(image_handle, address, (char *)(uintptr_t)name, name,
                                            -1, NULL, NULL, NULL, NULL, NULL);
    }
}

static void
register_variable(char *address, const char *name, bool constant)
{
    if (table_find("__cudaRegisterVar")) {
        ((void (*)(void **, char *, char *, const char *, int, size_t, int, int))table_function())(
            image_handle, address, (char *)(uintptr_t)name, name, 0, 64, constant, 0);
    }
}

void
table_register(void)
{
    if (!table_find("__cudaRegisterFatBinary"))
        return;
    image_handle = ((void **(*)(const void *))table_function())(table_fatbin());
    register_kernel(&table_add, "add");
    register_kernel(&table_store, "store");
    register_kernel(&table_bounded, "bounded");
    register_kernel(&table_shared, "shared");
    register_kernel(&table_missing, "missing");
    register_variable(table_dev, "dev", false);
    register_variable(table_const, "constant", true);
    register_variable(table_lost, "lost", false);
    if (table_find("__cudaRegisterManagedVar")) {
        ((void (*)(void **, void **, char *, const char *, int, size_t, int, int))table_function())(
            image_handle, (void **)&table_managed, (char *)(uintptr_t) "managed", "managed", 0, 64,
            0, 0);
    }
    if (table_find("__cudaRegisterFatBinaryEnd"))
        ((void (*)(void **))table_function())(image_handle);
}

void
table_unregister(void)
{
    if (table_find("__cudaUnregisterFatBinary"))
        ((void (*)(void **))table_function())(image_handle);
}
