/* The functions of audit/bytes.c beside those of the C library, on short texts of few letters. The
 * build gives them other names here.
 */
#include "harness/unit.h"

#include <stdlib.h>

void *bare_memchr(const void *p, int value, size_t n);
int bare_memcmp(const void *a, const void *b, size_t n);
void *bare_memcpy(void *to, const void *from, size_t n);
void *bare_memmem(const void *in, size_t size, const void *what, size_t n);
void *bare_memset(void *p, int value, size_t n);
char *bare_strchr(const char *s, int c);
int bare_strcmp(const char *a, const char *b);
size_t bare_strcspn(const char *s, const char *refused);
size_t bare_strlen(const char *s);
int bare_strncmp(const char *a, const char *b, size_t n);
size_t bare_strnlen(const char *s, size_t most);
char *bare_strrchr(const char *s, int c);
size_t bare_strspn(const char *s, const char *accepted);

#define ROUNDS 20000
#define TEXT_MAX 12 /* letters */

static unsigned seed = 1;

static unsigned
next_number(unsigned below)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % below;
}

/* Up to TEXT_MAX letters, one of them not ASCII, so that comparisons must be of unsigned bytes. */
static size_t
make_text(char *out)
{
    const size_t n = next_number(TEXT_MAX + 1);

    for (size_t i = 0; i < n; i++)
        out[i] = "ab\xe9"[next_number(3)];
    out[n] = '\0';
    return n;
}

static int
sign_of(int n)
{
    return (n > 0) - (n < 0);
}

static void
searches_agree(void **state)
{
    char a[TEXT_MAX + 1], b[TEXT_MAX + 1];

    (void)state;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const size_t n = make_text(a), m = make_text(b) % 3;
        const int c = "ab\xe9"
                      "c"[next_number(5)]; /* or the 0 at the end */

        b[m] = '\0';
        assert_ptr_equal(bare_memchr(a, c, n), memchr(a, c, n));
        assert_ptr_equal(bare_memmem(a, n, b, m), memmem(a, n, b, m));
        assert_ptr_equal(bare_strchr(a, c), strchr(a, c));
        assert_ptr_equal(bare_strrchr(a, c), strrchr(a, c));
        assert_int_equal(bare_strspn(a, b), strspn(a, b));
        assert_int_equal(bare_strcspn(a, b), strcspn(a, b));
        assert_int_equal(bare_strlen(a), n);
        assert_int_equal(bare_strnlen(a, m), strnlen(a, m));
    }
}

static void
comparisons_agree(void **state)
{
    char a[TEXT_MAX + 1], b[TEXT_MAX + 1];

    (void)state;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const size_t n = make_text(a), m = make_text(b);
        const size_t most = next_number(TEXT_MAX + 1);

        assert_int_equal(sign_of(bare_strcmp(a, b)), sign_of(strcmp(a, b)));
        assert_int_equal(sign_of(bare_strncmp(a, b, most)), sign_of(strncmp(a, b, most)));
        assert_int_equal(sign_of(bare_memcmp(a, b, n < m ? n : m)),
                         sign_of(memcmp(a, b, n < m ? n : m)));
    }
}

static void
copies_and_fills_stay_in_their_bounds(void **state)
{
    (void)state;
    for (size_t n = 0; n <= TEXT_MAX; n++) {
        char out[TEXT_MAX + 2];

        assert_ptr_equal(bare_memset(out, 'x', sizeof out), out);
        assert_ptr_equal(bare_memcpy(out + 1, "abcdefghijkl", n), out + 1);
        assert_memory_equal(out + 1, "abcdefghijkl", n);
        assert_int_equal(out[0], 'x');
        assert_int_equal(out[n + 1], 'x');
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(searches_agree),
    cmocka_unit_test(comparisons_agree),
    cmocka_unit_test(copies_and_fills_stay_in_their_bounds),
};

HED_UNIT_MAIN(tests)
