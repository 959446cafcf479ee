/* Runs a PTX kernel on this machine's processor with libheddle-kernel and nothing else: no GPU, no
 * driver, no CUDA.
 *
 *     ptxrun                  adds two vectors with the kernel below
 *     ptxrun FILE             lists the kernels of a PTX file, a fat binary or a cubin
 *     ptxrun FILE KERNEL      explains one of them, or says why it cannot be run
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heddle/kernel.h>

#define N 10000
#define THREADS 256

static const char add_text[] =
    ".version 7.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum,\n"
    "                    .param .u32 n)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .f32 %f<4>;\n"
    "    .reg .b32 %r<6>;\n"
    "    .reg .b64 %d<8>;\n"
    "    ld.param.u64 %d1, [a];\n"
    "    ld.param.u64 %d2, [b];\n"
    "    ld.param.u64 %d3, [sum];\n"
    "    ld.param.u32 %r1, [n];\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    mov.u32 %r3, %ntid.x;\n"
    "    mov.u32 %r4, %tid.x;\n"
    "    mad.lo.u32 %r5, %r2, %r3, %r4;\n"
    "    setp.ge.u32 %p, %r5, %r1;\n"
    "    @%p bra done;\n"
    "    mul.wide.u32 %d4, %r5, 4;\n"
    "    add.u64 %d5, %d1, %d4;\n"
    "    add.u64 %d6, %d2, %d4;\n"
    "    add.u64 %d7, %d3, %d4;\n"
    "    ld.global.f32 %f1, [%d5];\n"
    "    ld.global.f32 %f2, [%d6];\n"
    "    add.f32 %f3, %f1, %f2;\n"
    "    st.global.f32 [%d7], %f3;\n"
    "done:\n"
    "    ret;\n"
    "}\n";

static int
fail(const char *what, const struct heddle_why *why)
{
    fprintf(stderr, "ptxrun: %s: %s\n", what, why->text);
    return 1;
}

static int
add_vectors(void)
{
    static float a[N], b[N], sum[N]; /* any memory of the program will do */
    const float *pa = a, *pb = b;
    float *psum = sum;
    uint32_t n = N, wrong = 0;
    void *args[] = {&pa, &pb, &psum, &n};
    const struct heddle_grid grid = {.size = sizeof grid,
                                     .blocks = {(N + THREADS - 1) / THREADS, 1, 1},
                                     .threads = {THREADS, 1, 1}};
    struct heddle_image *image;
    struct heddle_why why;

    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = 0.5f * (float)i;
    }
    if (heddle_image_open(add_text, sizeof add_text, &image, &why) != 0)
        return fail("the text of the kernel", &why);
    if (heddle_image_run(image, heddle_image_find(image, "add"), &grid, args, &why) != 0)
        return fail("add", &why);
    heddle_image_close(image);
    for (int i = 0; i < N; i++)
        wrong += sum[i] != 1.5f * (float)i;
    printf("heddle %s: %d sums on the processor, %u of them wrong\n", heddle_kernel_version(), N,
           wrong);
    return wrong != 0;
}

static void *
read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *bytes = NULL;
    long n;

    if (f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
        bytes = malloc((size_t)n + 1);
        *size = bytes ? fread(bytes, 1, (size_t)n, f) : 0;
    }
    if (f)
        fclose(f);
    return bytes;
}

static void
list_kernels(struct heddle_image *image)
{
    for (int i = 0; i < heddle_image_count(image); i++) {
        struct heddle_kernel k = {.size = sizeof k};
        struct heddle_why why = {.text = ""};

        heddle_image_kernel(image, i, &k);
        printf("%s: %u parameters, %u bytes of shared memory", k.name, k.params, k.shared);
        if (heddle_image_check(image, i, &why) != 0)
            printf("; refused: %s", why.text);
        printf("\n");
    }
}

static int
show_file(const char *path, const char *kernel)
{
    struct heddle_image *image;
    struct heddle_why why;
    size_t size = 0;
    void *bytes = read_file(path, &size);
    char text[4096];
    int err = heddle_image_open(bytes, size, &image, &why);

    free(bytes);
    if (err)
        return fail(path, &why);
    if (kernel) {
        err =
            heddle_image_explain(image, heddle_image_find(image, kernel), NULL, text, sizeof text);
        printf("%s", err < 0 ? "there is no such kernel\n" : text);
    } else {
        list_kernels(image);
    }
    heddle_image_close(image);
    return err < 0;
}

int
main(int argc, char **argv)
{
    return argc > 1 ? show_file(argv[1], argc > 2 ? argv[2] : NULL) : add_vectors();
}
