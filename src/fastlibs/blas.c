/* Finds OpenBLAS and calls it. See blas.h.
 *
 * The system's library comes first; if there is none, the one that NumPy or SciPy brought along
 * from the package index and has loaded already: it has names and numbers of its own, so that it
 * does not meet another one in the same process.
 */
#include "fastlibs/blas.h"

#include <dlfcn.h>
#include <fenv.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

/* CBLAS's numbers. */
#define COLUMNS 102
#define NO_TRANSPOSE 111
#define TRANSPOSE 112
#define CONJUGATE 113

#define BUNDLED "libscipy_openblas64_"

static struct hed_blas blas;
static char blas_name[64];
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The path of the first library of that kind that the process has loaded. It is opened afterwards:
 * a lock of the loader is held here. */
static int
find_bundled(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    if (!info->dlpi_name || !strstr(info->dlpi_name, BUNDLED) ||
        strlen(info->dlpi_name) >= PATH_MAX)
        return 0;
    memcpy(arg, info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 1;
}

static bool
bind_library(void *library, const char *prefix, const char *suffix, bool is_wide)
{
    static const char letters[] = {'s', 'd', 'c', 'z'};
    char name[64];
    const char *(*config)(void);

    for (unsigned i = 0; i < sizeof letters; i++) {
        snprintf(name, sizeof name, "%scblas_%cgemm%s", prefix, letters[i], suffix);
        blas.gemm[i] = dlsym(library, name);
        if (!blas.gemm[i])
            return false;
    }
    snprintf(name, sizeof name, "%sopenblas_get_config%s", prefix, suffix);
    config = (const char *(*)(void))dlsym(library, name);
    /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ...": the first two words. */
    snprintf(blas_name, sizeof blas_name, "%s", config ? config() : "OpenBLAS");
    for (char *at = strchr(blas_name, ' '); at; at = NULL)
        at[1 + strcspn(at + 1, " ")] = '\0';
    blas.name = blas_name;
    blas.is_wide = is_wide;
    return true;
}

static void
load_library(void)
{
    char path[PATH_MAX] = "";
    void *library;
    fenv_t env;

    /* Its threads begin as this one is. */
    fegetenv(&env);
    fesetenv(FE_DFL_ENV);
    library = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_LOCAL);
    is_loaded = library && bind_library(library, "", "", false);
    if (!is_loaded && dl_iterate_phdr(find_bundled, path)) {
        library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
        is_loaded = library && bind_library(library, "scipy_", "64_", true);
    }
    fesetenv(&env);
    if (!is_loaded)
        hed_warn(FAST_LIBS, "there is no OpenBLAS on this machine, so kernels do all the work; "
                            "install libopenblas0-pthread, or NumPy from the package index");
}

const struct hed_blas *
hed_blas_load(void)
{
    (void)pthread_once(&once, load_library);
    return is_loaded ? &blas : NULL;
}

static int
op_number(char op)
{
    return op == 'N' ? NO_TRANSPOSE : op == 'T' ? TRANSPOSE : CONJUGATE;
}

/* The two real types take their factors by value, the complex ones by address. */
#define CALL(number, factor, alpha, beta)                                                          \
    ((void (*)(int, int, int, number, number, number, factor, const void *, number, const void *,  \
               number, factor, void *, number))f)(                                                 \
        COLUMNS, op_number(g->op_a), op_number(g->op_b), (number)g->m, (number)g->n, (number)g->k, \
        alpha, g->a, (number)g->lda, g->b, (number)g->ldb, beta, g->c, (number)g->ldc)

void
hed_blas_gemm(const struct hed_blas *b, const struct hed_blas_gemm *g)
{
    const float alpha[] = {(float)g->alpha.re, (float)g->alpha.im};
    const float beta[] = {(float)g->beta.re, (float)g->beta.im};
    void *f = b->gemm[g->type];

    switch (g->type) {
    case HED_PRODUCT_F32:
        if (b->is_wide)
            CALL(int64_t, float, alpha[0], beta[0]);
        else
            CALL(int, float, alpha[0], beta[0]);
        return;
    case HED_PRODUCT_F64:
        if (b->is_wide)
            CALL(int64_t, double, g->alpha.re, g->beta.re);
        else
            CALL(int, double, g->alpha.re, g->beta.re);
        return;
    default:
        break;
    }

    const void *factors[] = {g->type == HED_PRODUCT_C32 ? (const void *)alpha : &g->alpha,
                             g->type == HED_PRODUCT_C32 ? (const void *)beta : &g->beta};

    if (b->is_wide)
        CALL(int64_t, const void *, factors[0], factors[1]);
    else
        CALL(int, const void *, factors[0], factors[1]);
}
