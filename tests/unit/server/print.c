/* What kernels print, in a worker: text that nobody fetches does not fill the server's memory, and
 * the client is told what it has missed. */
#include "harness/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/channel/channel.h"
#include "remote/wire/channel/ops.h"

#define MIB ((size_t)1 << 20)

static char sent[64 * MIB]; /* the texts that the client gets */
static size_t sent_size;
static _Alignas(16) char room[65536];

static void *
begin_message(struct hed_channel *c, uint32_t size)
{
    (void)c;
    return size <= sizeof room ? room : NULL;
}

static int
end_message(struct hed_channel *c, uint32_t size, bool flush)
{
    (void)c, (void)flush;
    memcpy(sent + sent_size, room + sizeof(struct hed_msg), size - sizeof(struct hed_msg));
    sent_size += size - sizeof(struct hed_msg);
    return 0;
}

static const struct hed_channel_ops ops = {.begin = begin_message, .end = end_message};

/* Kernels of a worker print so many MiB; `looks` times it looks whether that is too much. Returns
 * how many MiB its memory then holds, and has the client fetch the rest. */
static size_t
print_and_fetch(size_t mib, int looks)
{
    static struct hed_worker w;
    static struct hed_worker_channel ch = {.worker = &w};
    struct hed_channel channel = {.ops = &ops};
    char *text = malloc(MIB);
    struct hed_why why;
    struct stat st;
    const int out = dup(STDOUT_FILENO);

    memset(text, 'x', MIB);
    assert_int_equal(hed_worker_print_init(&w, &why), 0);
    for (size_t i = 0; i < mib; i++)
        assert_int_equal(write(STDOUT_FILENO, text, MIB), MIB);
    for (int i = 0; i < looks; i++)
        hed_print_trim(&w);
    assert_int_equal(fstat(STDOUT_FILENO, &st), 0);
    ch.channel = &channel;
    sent_size = 0;
    assert_int_equal(hed_print_deliver(&ch), 0);
    assert_true(dup2(out, STDOUT_FILENO) >= 0);
    (void)close(out);
    free(text);
    return (size_t)st.st_blocks * 512 / MIB;
}

static void
text_that_is_fetched_is_whole(void **state)
{
    (void)state;
    assert_int_equal(print_and_fetch(3, 1), 3);
    assert_int_equal(sent_size, 3 * MIB);
    assert_int_equal(sent[0], 'x');
}

static void
text_that_nobody_fetches_is_dropped(void **state)
{
    static const char notice[] = "heddle: 50331648 bytes that kernels printed were dropped here\n";

    (void)state;
    assert_in_range(print_and_fetch(64, 2), 16, 17);
    assert_memory_equal(sent, notice, sizeof notice - 1);
    assert_int_equal(sent_size, 16 * MIB + sizeof notice - 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(text_that_is_fetched_is_whole),
    cmocka_unit_test(text_that_nobody_fetches_is_dropped),
};

HED_UNIT_MAIN(tests)
