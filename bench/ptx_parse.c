/* How fast is PTX parsed and checked on one core?
 *
 *     bench_ptx_parse [FILE...]
 *
 * Without files: a module made here, in the mix of instructions that compilers make. Prints
 * `name value unit`, the best of several runs, by the processor's time: other load does not count.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/text/parse.h"

#define RUNS 5
#define KERNELS 200
#define BLOCKS 100

static void
make_text(struct hed_buf *b)
{
    hed_buf_addf(b, ".version 8.0\n.target sm_80\n.address_size 64\n");
    for (int k = 0; k < KERNELS; k++) {
        hed_buf_addf(
            b,
            ".visible .entry kernel_%d(\n\t.param .u64 kernel_%d_param_0,\n"
            "\t.param .u32 kernel_%d_param_1\n)\n{\n\t.reg .pred \t%%p<200>;\n"
            "\t.reg .f32 \t%%f<900>;\n\t.reg .b32 \t%%r<900>;\n\t.reg .b64 \t%%rd<900>;\n\n"
            "\tld.param.u64 \t%%rd1, [kernel_%d_param_0];\n"
            "\tcvta.to.global.u64 \t%%rd2, %%rd1;\n",
            k, k, k, k);
        for (int i = 0; i < BLOCKS; i++)
            hed_buf_addf(b,
                         "\tmov.u32 \t%%r%d, %%tid.x;\n\tmad.lo.s32 \t%%r%d, %%r%d, 12, %%r1;\n"
                         "\tmul.wide.s32 \t%%rd%d, %%r%d, 4;\n\tadd.s64 \t%%rd%d, %%rd2, %%rd%d;\n"
                         "\tld.global.nc.f32 \t%%f%d, [%%rd%d+16];\n"
                         "\tfma.rn.f32 \t%%f%d, %%f%d, 0f3F800000, %%f1;\n"
                         "\tsetp.lt.s32 \t%%p%d, %%r%d, 100;\n\t@%%p%d bra \t$L__BB%d_%d;\n"
                         "\tst.global.f32 \t[%%rd%d], %%f%d;\n$L__BB%d_%d:\n",
                         i + 1, i + 200, i + 1, i + 10, i + 200, i + 300, i + 10, i + 5, i + 300,
                         i + 200, i + 5, i + 1, i + 200, i + 1, k, i, i + 300, i + 200, k, i);
        hed_buf_addf(b, "\tret;\n\n}\n");
    }
}

static double
parse_text(const char *text, size_t size)
{
    struct hed_ptx_module m;
    double best = 0;

    for (int i = 0; i < RUNS; i++) {
        const uint64_t start = hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID);

        hed_ptx_module_init(&m, HED_PTX_CEILING);
        if (hed_ptx_parse(&m, text, size) != 0) {
            fprintf(stderr, "bench_ptx_parse: the text does not parse\n");
            exit(1);
        }

        const uint64_t took = hed_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
        const double speed = (double)size * 1e3 / (double)took;

        hed_ptx_module_fini(&m);
        best = speed > best ? speed : best;
    }
    return best;
}

static void
bench_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct hed_buf b;
    char part[65536];
    size_t n;

    hed_buf_init(&b, (size_t)1 << 31);
    while (f && (n = fread(part, 1, sizeof(part), f)) > 0)
        hed_buf_add(&b, part, n);
    if (f)
        fclose(f);
    printf("%s %.1f MB/s\n", path, parse_text(hed_buf_cstr(&b), b.size));
    hed_buf_fini(&b);
}

int
main(int argc, char **argv)
{
    struct hed_buf b;

    for (int i = 1; i < argc; i++)
        bench_file(argv[i]);
    if (argc > 1)
        return 0;
    hed_buf_init(&b, 1 << 26);
    make_text(&b);
    printf("ptx_parse %.1f MB/s\n", parse_text(hed_buf_cstr(&b), b.size));
    hed_buf_fini(&b);
    return 0;
}
