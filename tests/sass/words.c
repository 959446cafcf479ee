/* Instructions that ptxas makes of nothing in tests/ptx, written by hand: they take the place of
 * one in a kernel that ptxas compiled.
 *
 *     sass_words PTXAS warp|baseline
 *
 * The results are what the instructions mean as far as we know; no GPU was asked. Exits with 77 if
 * there is no ptxas.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "kernel/fatbin/bytes.h"
#include "ptx/exec/harness.h"
#include "sass/lifted.h"

#define MARK UINT64_C(0x5eedface)
#define FILE_MAX ((size_t)1 << 20)

static const char carrier[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .b64 in, .param .b64 out)\n{\n"
    ".reg .b32 %r<3>;\n.reg .b64 %d<3>;\n"
    "ld.param.b64 %d1, [in];\nld.param.b64 %d2, [out];\nld.global.b32 %r1, [%d1];\n"
    "xor.b32 %r2, %r1, 0x5eedface;\nst.global.b32 [%d2], %r2;\nret;\n}\n";

/* An instruction: the source goes to bit 24 or 32, the destination to 16. */
static const struct word {
    const char *text;
    uint64_t low, high;
    unsigned source;
    uint32_t in, out;
} words[] = {
    {"FMUL.D2 3 * 1", 0x3f80000000007820, UINT64_C(3) << 20, 24, 0x40400000, 0x3fc00000},
    {"FMUL.D2, rounded once", 0x3f80000000007820, UINT64_C(3) << 20, 24, 3, 2},
    {"FMUL.D8", 0x3f80000000007820, UINT64_C(1) << 20, 24, 0x3f800000, 0x3e000000},
    {"FMUL.M8", 0x3f80000000007820, UINT64_C(7) << 20, 24, 0x3f800000, 0x41000000},
    {"FMUL.D2 of NaN", 0x3f80000000007820, UINT64_C(3) << 20, 24, 0xffc12345, 0x7fffffff},
    {"F2I.TRUNC of NaN", 0x7305, 0x20d100, 32, 0x7fc00000, 0x80000000},
    {"F2I.U32.TRUNC of NaN", 0x7305, 0x20d000, 32, 0x7fc00000, 0x80000000},
    {"F2I.S8.TRUNC of NaN", 0x7305, 0x20c100, 32, 0x7fc00000, 0xffffff80},
    {"F2I.TRUNC.NTZ of NaN", 0x7305, 0x20f100, 32, 0x7fc00000, 0},
    {"F2I.TRUNC", 0x7305, 0x20d100, 32, 0xc0200000, 0xfffffffe},
    {"I2F.U8 .B1", 0x1000000000007306, 0x1000, 32, 0x00001200, 0x41900000},
    {"I2F.S8 .B3", 0x3000000000007306, 0x1400, 32, 0xff000000, 0xbf800000},
    {"I2F.S16 .H1", 0x1000000000007306, 0x101400, 32, 0xfffe0000, 0xc0000000},
    {"F2F.F32.F16 .H1", 0x1000000000007304, 0x101000, 32, 0x3c000000, 0x3f800000},
    {"HADD2.F32 -RZ, .H1_H1", 0x30000000ff007230, 0x4100, 32, 0xc0003c00, 0xc0000000},
    {"HADD2.F32 -RZ, -|.H0_H0|", 0xe0000000ff007230, 0x4100, 32, 0xc0003c00, 0xbf800000},
    {"MUFU.SIN of 1/4", 0x7308, 0x400, 32, 0x3e800000, 0x3f800000},
    {"MUFU.SIN of 1000 + 1/4", 0x7308, 0x400, 32, 0x447a1000, 0x3f800000},
    {"MUFU.SIN of -0", 0x7308, 0x400, 32, 0x80000000, 0x80000000},
    {"MUFU.COS of 1/2", 0x7308, 0, 32, 0x3f000000, 0xbf800000},
    {"MUFU.COS of infinity", 0x7308, 0, 32, 0x7f800000, 0x7fffffff},
    {"FMNMX.NAN", 0x3f80000000007809, 0x3820000, 24, 0x7fc00000, 0x7fffffff},
    {"FMNMX", 0x3f80000000007809, 0x3800000, 24, 0x7fc00000, 0x3f800000},
};

static const char pair_carrier[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .b64 in, .param .b64 out)\n{\n"
    ".reg .b32 %r<5>;\n.reg .b64 %d<3>;\n"
    "ld.param.b64 %d1, [in];\nld.param.b64 %d2, [out];\nld.global.v2.b32 {%r1, %r2}, [%d1];\n"
    "xor.b32 %r3, %r1, 0x5eedface;\nxor.b32 %r4, %r2, 0x5eedface;\n"
    "st.global.v2.b32 [%d2], {%r3, %r4};\nst.global.v2.b32 [%d1+16], {%r1, %r2};\nret;\n}\n";

/* The result is -(in << 2), of 64 bits, by LEA and LEA.HI.X: what cuBLAS has, and ptxas makes of
 * no PTX that we know. */
static const uint64_t pairs[] = {0, 1, 3, 0x4000000000000001, 0x40000000, 0x12345678ffffffff};

struct place {
    long at;
    uint64_t low, high;
};

/* Finds the marked instructions. */
static unsigned
find_marks(FILE *f, struct place *out, unsigned most)
{
    static uint8_t bytes[FILE_MAX];
    const size_t size = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
    unsigned n = 0;

    for (size_t i = 0; n < most && i + 16 <= size; i += 8) {
        const uint64_t low = hed_load_u64(bytes + i);

        if (low >> 32 == MARK && (low & 0xfff) == 0x812)
            out[n++] = (struct place){(long)i, low, hed_load_u64(bytes + i + 8)};
    }
    return n;
}

static bool
put_word(FILE *f, const struct place *p, uint64_t low, uint64_t high)
{
    /* The highest bits say how long to wait. */
    const uint64_t with[2] = {low, high | (p->high >> 41) << 41};

    return fseek(f, p->at, SEEK_SET) == 0 && fwrite(with, sizeof(with), 1, f) == 1;
}

/* Puts an instruction in place of the marked one. */
static bool
place_word(const char *path, const struct word *w)
{
    FILE *f = fopen(path, "r+b");
    struct place p;
    bool done =
        find_marks(f, &p, 1) == 1 &&
        put_word(f, &p, w->low | (p.low & 0xff0000) | (p.low >> 24 & 255) << w->source, w->high);

    if (f && fclose(f) != 0)
        done = false;
    return done;
}

/* LEA Rd, P0, -Ra, RZ, 2 and LEA.HI.X Rd+1, ~Ra, RZ, Ra+1, 2, P0. */
static bool
place_pair(const char *path)
{
    FILE *f = fopen(path, "r+b");
    struct place p[2];
    bool done = find_marks(f, p, 2) == 2;
    uint64_t to, from;

    if (done) {
        to = hed_min(p[0].low >> 16 & 255, p[1].low >> 16 & 255);
        from = hed_min(p[0].low >> 24 & 255, p[1].low >> 24 & 255);
        done = to != from &&
               put_word(f, &p[0], UINT64_C(0xff00007211) | to << 16 | from << 24, 0x78011ff) &&
               put_word(f, &p[1], UINT64_C(0xff00007211) | (to + 1) << 16 | from << 24,
                        0xf1500 | (from + 1));
    }
    if (f && fclose(f) != 0)
        done = false;
    return done;
}

static bool
check_word(const struct lifted *t, enum exec_tier tier, const struct word *w)
{
    uint32_t in = w->in, out = 0xeeeeeeee;
    const uint64_t params[] = {(uintptr_t)&in, (uintptr_t)&out};
    const struct exec_launch launch = {.params = params, .size = sizeof(params)};
    struct hed_why why = {""};
    struct hed_buf ptx, said;
    struct exec e;
    int err;

    hed_buf_init(&ptx, FILE_MAX);
    hed_buf_init(&said, FILE_MAX);
    if (!lifted_assemble(t, carrier, &said) || !place_word(t->cubin, w)) {
        printf("no kernel to put it into: %s\n", hed_buf_cstr(&said));
        exit(1);
    }
    err = lifted_text(t, HED_SASS_FOR_CPU, &ptx, &why);
    if (err == 0) {
        exec_open(&e, hed_buf_cstr(&ptx), tier);
        err = exec_run(&e, "k", &launch);
        exec_close(&e);
    }
    if (err || out != w->out)
        printf("%s: %08" PRIx32 " instead of %08" PRIx32 " %s\n", w->text, out, w->out, why.text);
    hed_buf_fini(&said);
    hed_buf_fini(&ptx);
    return err == 0 && out == w->out;
}

static bool
check_pairs(const struct lifted *t, enum exec_tier tier)
{
    struct hed_why why = {""};
    struct hed_buf ptx, said;
    struct exec e;
    bool good = true;

    hed_buf_init(&ptx, FILE_MAX);
    hed_buf_init(&said, FILE_MAX);
    if (!lifted_assemble(t, pair_carrier, &said) || !place_pair(t->cubin)) {
        printf("no kernel to put LEA into: %s\n", hed_buf_cstr(&said));
        exit(1);
    }
    if (lifted_text(t, HED_SASS_FOR_CPU, &ptx, &why) != 0) {
        printf("LEA: %s\n", why.text);
        exit(1);
    }
    if (!strstr(hed_buf_cstr(&ptx), "sub.s64")) {
        printf("LEA: the halves are not one subtraction:\n%s\n", hed_buf_cstr(&ptx));
        good = false;
    }
    exec_open(&e, hed_buf_cstr(&ptx), tier);
    for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        uint64_t in[4] = {pairs[i]}, out = 0;
        const uint64_t params[] = {(uintptr_t)in, (uintptr_t)&out};
        const struct exec_launch launch = {.params = params, .size = sizeof(params)};

        if (exec_run(&e, "k", &launch) != 0 || out != -(pairs[i] << 2)) {
            printf("LEA of %" PRIx64 ": %" PRIx64 "\n", pairs[i], out);
            good = false;
        }
    }
    exec_close(&e);
    hed_buf_fini(&said);
    hed_buf_fini(&ptx);
    return good;
}

int
main(int argc, char **argv)
{
    const unsigned count = sizeof(words) / sizeof(words[0]) + 1;
    enum exec_tier tier;
    unsigned good = 0;
    struct lifted t;

    if (argc != 3) {
        fprintf(stderr, "usage: sass_words PTXAS warp|baseline\n");
        return 2;
    }
    if (!lifted_init(&t, argv[1], "sm_80")) {
        printf("no ptxas: skipped\n");
        return 77;
    }
    tier = strcmp(argv[2], "warp") == 0 ? EXEC_COMPILED : EXEC_BASELINE;
    for (unsigned i = 0; i + 1 < count; i++)
        good += check_word(&t, tier, &words[i]);
    good += check_pairs(&t, tier);
    printf("%u instructions of %u are right\n", good, count);
    return good == count ? 0 : 1;
}
