/* cuGetProcAddress: every name, version and stream flavour gives the function that is exported for
 * it. The table comes from NVIDIA's header if it is installed, otherwise from our own.
 */
#include "conf.h"

struct row {
    const char *base;
    int version;
    cuuint64_t flags; /* 2: the per-thread-default-stream one */
    const char *name; /* exported */
};

static const struct row rows[] = {
#include "proc_table.inc"
};

#define ROWS (sizeof rows / sizeof *rows)

static CUresult
ask_address(const char *base, int version, cuuint64_t flags, void **p,
            CUdriverProcAddressQueryResult *s)
{
    return CU(cuGetProcAddress_v2)(base, p, version, flags, s);
}

static void
gives(const char *base, int version, cuuint64_t flags, const char *name)
{
    CUdriverProcAddressQueryResult status = 77;
    void *p = NULL;
    void *q = NULL;

    CHECK(ask_address(base, version, flags, &p, &status) == CUDA_SUCCESS, "%s %d", base, version);
    CHECK(p == conf_symbol(name), "%s %d flags %d: not %s", base, version, (int)flags, name);
    CHECK_IS(status, CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK(ask_address(base, version, flags, &q, NULL) == CUDA_SUCCESS && q == p,
          "%s without status", base);
    q = NULL;
    CHECK_IS(CU(cuGetProcAddress)(base, &q, version, flags), CUDA_SUCCESS);
    CHECK(q == p, "%s %d: the older form says otherwise", base, version);
}

static void
refuses(const char *base, int version, cuuint64_t flags, int expected)
{
    CUdriverProcAddressQueryResult status = 77;
    void *p = (void *)1;

    CHECK(ask_address(base, version, flags, &p, &status) == CUDA_SUCCESS, "%s %d", base, version);
    CHECK(!p, "%s %d: an address", base, version);
    CHECK_IS(status, expected);
    p = (void *)1;
    CHECK_IS(CU(cuGetProcAddress)(base, &p, version, flags), CUDA_ERROR_NOT_FOUND);
    CHECK(p == (void *)1, "%s %d: the older form changed the address", base, version);
}

/* The row that the rule chooses: the newest one that is not too new, of the flavour if it
 * exists. */
static const struct row *
choose(const char *base, int version, cuuint64_t flags)
{
    const struct row *best = NULL;

    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];

        if (strcmp(r->base, base) != 0 || r->version > version || (r->flags && !(flags & 2)))
            continue;
        if (!best || r->flags > best->flags ||
            (r->flags == best->flags && r->version >= best->version))
            best = r;
    }
    return best;
}

static void
every_combination(void)
{
    size_t with_flavour = 0;

    for (size_t i = 0; i < ROWS; i++) {
        gives(rows[i].base, rows[i].version, rows[i].flags ? 2 : 1, rows[i].name);
        with_flavour += rows[i].flags != 0;
    }
    CHECK(ROWS > 600 && with_flavour > 80, "%zu rows, %zu with a flavour", ROWS, with_flavour);
}

static void
versions_between(void)
{
    static const int offsets[] = {-1, 1, 10, 1000, 100000};

    for (size_t i = 0; i < ROWS; i++) {
        for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
            for (cuuint64_t flags = 0; flags <= 2; flags++) {
                const int version = rows[i].version + offsets[k];
                const struct row *r = choose(rows[i].base, version, flags);

                if (r)
                    gives(rows[i].base, version, flags, r->name);
                else
                    refuses(rows[i].base, version, flags, 2);
            }
        }
    }
}

static void
what_there_is_not(void)
{
    static const char *const unknown[] = {
        "cuNothing", "cu",   "cuInitX",       "cuini",
        "zzz",       "\xff", "cuMemAlloc_v2", "cuMemcpyHtoD_v2_ptds"};

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        refuses(unknown[i], 13000, 0, 1);
    refuses("cuMemAlloc", 0, 0, 2);
    refuses("cuMemAlloc", -1, 0, 2);
    refuses("cuMemAlloc", INT32_MIN, 2, 2);
}

static void
odd_arguments(void)
{
    CUdriverProcAddressQueryResult status = 77;
    void *p = NULL;

    CHECK_IS(ask_address(NULL, 13000, 0, &p, &status), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(ask_address("cuInit", 13000, 0, NULL, &status), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(ask_address(NULL, 13000, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuGetProcAddress)(NULL, &p, 13000, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(CU(cuGetProcAddress)("cuInit", NULL, 13000, 0), CUDA_ERROR_INVALID_VALUE);
    /* NVIDIA's runtime asks for "" first and expects success. */
    CHECK_IS(ask_address("", 13000, 0, &p, &status), CUDA_SUCCESS);
    CHECK_IS(CU(cuGetProcAddress)("", &p, 13000, 0), CUDA_ERROR_NOT_FOUND);
    /* Unknown flags: any answer is fine, but there must be one. */
    (void)ask_address("cuInit", 13000, ~(cuuint64_t)0, &p, &status);
    (void)ask_address("cuInit", INT32_MAX, 3, &p, &status);
}

int
main(void)
{
    every_combination();
    versions_between();
    what_there_is_not();
    odd_arguments();
    return 0;
}
