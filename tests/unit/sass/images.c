/* Tests of kernel/sass/lift: which fetches from textures and which accesses to surfaces are lifted,
 * and that all others are refused.
 */
#include "unit/sass/lift_case.h"

/* Instructions whose object is c[0x0][0x118], which may be anything, and bits to be changed. */
static const struct {
    uint64_t low, high;
    unsigned bits[3]; /* 0: none */
    bool known;
} rows[] = {
    {0x1000460a04047b66, 0x000f4200009e0f06, {0}, true},       /* TLD.SCR.LZ, 1D */
    {0x100046ff04fe7b66, 0x000f4200009e01ff, {0}, true},       /* R254, one channel */
    {0x100046ff04fe7b66, 0x000f4200009e03ff, {0}, false},      /* R254, two channels */
    {0x100046ff04ff7b66, 0x000f4200009e0fff, {0}, true},       /* no results */
    {0x10004604fe047b66, 0x000f4200009e0f06, {61}, true},      /* 2D, x in R254 */
    {0x10004604fe047b66, 0x000f4200009e0f06, {62}, false},     /* 3D, y in R255 */
    {0x10004604fe047b66, 0x000f4200009e0f06, {61, 62}, false}, /* a cube of integers */
    {0x1000460404047b66, 0x000f4200009e0f06, {62, 63}, false}, /* no shape */
    {0x1000460404047b66, 0x000f4200009e0f06, {59}, false},     /* .B */
    {0x1000460404047b66, 0x000f4200009e0f06, {78}, false},     /* .MS */
    {0x1000460404047b66, 0x000f4200009e0f06, {79}, false},     /* .F16 */
    {0x1000460404047b66, 0x000f4200009e0f06, {81}, false},     /* P6 */
    {0x1000460404047b66, 0x000f4200009e0f06, {87, 88}, false}, /* no level */
    {0x1000460404047b66, 0x000f4200009e0f06, {88}, false},     /* .LL without .CL */
    {0x1000460404047b66, 0x000f4200009e0f06, {77, 88}, true},  /* .LL.CL */
    {0x1000580404047b66, 0x000f4200009e0f06, {0}, false},      /* a parameter of none */
    {0x3000460604047b60, 0x000f4200019e0f06, {0}, true},       /* TEX.SCR.LL, 2D */
    {0x3000460604047b60, 0x000f4200019e0f06, {87, 88}, false}, /* level of the quad */
    {0x3000460604047b60, 0x000f4200019e0f06, {76}, true},      /* .AOFFI */
    {0x3000460604047b60, 0x000f4200019e0f06, {77}, false},     /* .NDV */
    {0x3000460604047b60, 0x000f4200019e0f06, {78}, false},     /* .DC */
    {0x3800000604047361, 0x000f4400019e0f06, {0}, true},       /* TEX.SCR.B.LL */
    {0x3800000604047361, 0x000f4400019e0f06, {59}, false},     /* without .B */
    {0x3000460500047b63, 0x000f4200009e0f06, {0}, true},       /* TLD4.SCR.G, 2D */
    {0x3000460500047b63, 0x000f4200009e0f06, {61, 62}, false}, /* 3D */
    {0x3000460500047b63, 0x000f4200009e0f06, {77}, false},     /* .PTP */
    {0x2000460c04047b6c, 0x000f4200001e0f06, {0}, true},       /* TXD, 2D */
    {0x200046fd04047b6c, 0x000f4200001e0f06, {0}, false},      /* gradients to R256 */
    {0x2000460c04047b6c, 0x000f4200001e0f06, {87}, false},     /* .LC */
    {0x2000460c04047b6c, 0x000f4200001e0f06, {61, 62}, false}, /* 3D */
    {0x0000460005057b6f, 0x000f4200000001ff, {0}, true},       /* TXQ, the width */
    {0x0000460005057b6f, 0x000f4200000001ff, {75}, false},     /* the levels */
    {0x0000460005057b6f, 0x000f4200000001ff, {62}, false},     /* the type */
    {0x6000460004047b99, 0x000f6200001eab00, {0}, true},       /* SULD.D.BA.2D.64 */
    {0x6000460004047b99, 0x000f6200001eab00, {59, 60}, false}, /* nothing for outside */
    {0x6000460004047b99, 0x000f6200001eab00, {72}, false},     /* x is not in bytes */
    {0x6000460004047b99, 0x000f6200001eab00, {74}, false},     /* no size */
    {0x6000460004047b99, 0x000f6200001eab00, {73, 75}, true},  /* .U8 */
    {0x6000460004047b99, 0x000f6200001eab00, {62}, false},     /* a buffer */
    {0x6000460004047b99, 0x000f6200001eab00, {81}, false},     /* P6 */
    {0x600000000404799a, 0x000f6400001eab00, {0}, true},       /* the object in R0 */
    {0x6000460404007b9d, 0x000fe2000010ad00, {0}, true},       /* SUST.D.BA.2D.128 */
    {0x600046fc04007b9d, 0x000fe2000010ad00, {0}, false},      /* of R252 to R255 */
    {0x6000460404007b9d, 0x000fe2000010ad00, {80}, false},     /* no order of memory */
    {0x7000460404007b9b, 0x000fe2000010af00, {0}, true},       /* SUST.P.2D */
    {0x7000460404007b9b, 0x000fe2000010af00, {75}, false},     /* of three channels */
    {0x700046000200759f, 0x000fe20000914300, {0}, true},       /* SURED.D.BA.2D.MIN.S32 */
    {0x700046000200759f, 0x000fe20000914300, {61}, false},     /* of an array */
    {0x700046000200759f, 0x000fe20000914300, {88}, false},     /* .INC */
    {0x700046000200759f, 0x000fe20000914300, {74}, false},     /* of floats */
};

static void
other_forms_are_refused(void **state)
{
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t low = rows[i].low, high = rows[i].high;
        int err;

        for (unsigned k = 0; k < sizeof rows[i].bits / sizeof rows[i].bits[0]; k++) {
            const unsigned bit = rows[i].bits[k];

            if (bit >= 64)
                high ^= UINT64_C(1) << (bit - 64);
            else if (bit)
                low ^= UINT64_C(1) << bit;
        }
        begin_again(state);
        make_inst(&code, low, high);
        make_exit(&code);
        err = lift_code();
        if (err != (rows[i].known ? 0 : HED_ENOTSUP))
            fail_msg("row %u: %s", i, why.text);
        if (err == 0)
            text_can_be_parsed();
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(other_forms_are_refused, setup, teardown),
};

HED_UNIT_MAIN(tests)
