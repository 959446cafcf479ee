/* Calls that pass vector registers: all elements arrive, and all come back. */
#include "harness/unit.h"

#include <stdio.h>

#include "ptx/exec/harness.h"

static const struct {
    const char *type;
    unsigned bytes;
} types[] = {{"b16", 2}, {"u16", 2}, {"s32", 4}, {"f32", 4}, {"b64", 8}, {"u64", 8}, {"f64", 8}};

static const char *const names[] = {"x", "y", "z", "w"};

/* A function whose result is its argument with the elements in reverse, and another result after
 * it; between the two are other parameters, which must stay where they are. */
static void
write_function(char *text, size_t size, const char *type, unsigned count)
{
    size_t n = (size_t)snprintf(text, size,
                                ".func (.reg .v%u .%s o, .reg .u32 q) turn(.reg .u32 a, "
                                ".reg .v%u .%s i, .reg .u32 b) {\n",
                                count, type, count, type);

    for (unsigned k = 0; k < count; k++)
        n += (size_t)snprintf(text + n, size - n, "mov.%s o.%s, i.%s;\n", type, names[k],
                              names[count - 1 - k]);
    snprintf(text + n, size - n, "sub.u32 q, a, b; ret; }\n");
}

static void
check_vector(const char *type, unsigned bytes, unsigned count)
{
    _Alignas(32) uint8_t in[32], out[48] = {0};
    char function[1024], code[1024];
    uint32_t difference;

    for (unsigned i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)(7 * i + 3);
    write_function(function, sizeof function, type, count);
    snprintf(code, sizeof code,
             ".reg .v%u .%s v; .reg .v%u .%s w; .reg .u32 p;\n"
             "ld.v%u.%s v, [%%in]; mov.u32 %%r1, 50;\n"
             "call (w, p), turn, (%%r1, v, 8); st.v%u.%s [%%out], w; st.u32 [%%out+32], p;\n",
             count, type, count, type, count, type, count, type);
    exec_code(function, code, in, out);
    for (unsigned k = 0; k < count; k++)
        if (memcmp(out + (size_t)k * bytes, in + (size_t)(count - 1 - k) * bytes, bytes) != 0)
            fail_msg("v%u.%s: element %u is wrong", count, type, k);
    memcpy(&difference, out + 32, sizeof difference);
    assert_int_equal(difference, 42);
}

static void
vector_registers_are_passed_whole(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++)
        for (unsigned count = 2; count <= 4; count += 2)
            check_vector(types[i].type, types[i].bytes, count);
}

/* A result may be one element of a vector, and so may an argument. */
static void
elements_are_passed_one_by_one(void **state)
{
    uint32_t out[6] = {0};

    (void)state;
    exec_code(".func (.reg .u32 o) sum(.reg .v2 .u32 i) { mad.lo.u32 o, i.x, 10, i.y; ret; }\n"
              ".func (.reg .v2 .u32 o) both(.reg .u32 i) { mov.u32 o.x, i; add.u32 o.y, i, 1; "
              "ret; }\n",
              ".reg .v2 .u32 v; .reg .v4 .u32 w;\n"
              "mov.u32 v.x, 5; mov.u32 v.y, 7; call (%r1), sum, (v); st.u32 [%out], %r1;\n"
              "mov.u32 w.x, 0; mov.u32 w.y, 0; mov.u32 w.z, 0; mov.u32 w.w, 9;\n"
              "call (w.z), sum, (v); st.u32 [%out+4], w.z; st.u32 [%out+8], w.x;\n"
              "call (v), both, (w.w); st.u32 [%out+12], v.x; st.u32 [%out+16], v.y;\n",
              out, out);
    assert_int_equal(out[0], 57);
    assert_int_equal(out[1], 57);
    assert_int_equal(out[2], 0);
    assert_int_equal(out[3], 9);
    assert_int_equal(out[4], 10);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(vector_registers_are_passed_whole),
    cmocka_unit_test(elements_are_passed_one_by_one),
};

HED_UNIT_MAIN(tests)
