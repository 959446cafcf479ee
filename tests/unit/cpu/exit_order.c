/* Tests of exit_order.c: exit handlers that a library registers late run after ours. */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exit_order.h"
#include "harness/unit.h"

static int out[2]; /* what the handlers write, and where it is read */

static void
say(const char *text)
{
    if (write(out[1], text, strlen(text)) < 0)
        abort();
}

static void
ours(void)
{
    say("ours ");
}

static void
early(void)
{
    say("early ");
}

static void
late(void)
{
    say("late ");
}

static int
order_if_inside(struct dl_phdr_info *info, size_t size, void *symbol)
{
    Dl_info found;

    (void)size;
    if (!dladdr(symbol, &found) || (uintptr_t)found.dli_fbase != info->dlpi_addr)
        return 0;
    return hed_exit_order(info, ours) ? 1 : -1;
}

/* The child: a handler before the order is made, and two after it. */
static _Noreturn void
register_and_exit(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    void (**handler)(void) = dlsym(library, "exit_order_handler");
    void (*reg)(void) = (void (*)(void))dlsym(library, "exit_order_register");

    *handler = early;
    reg();
    if (dl_iterate_phdr(order_if_inside, (void *)reg) != 1)
        say("no order ");
    *handler = late;
    reg();
    reg();
    exit(0);
}

static void
check_order(const char *path)
{
    char text[64] = "";
    size_t have = 0;
    ssize_t n;
    int status;

    assert_return_code(pipe(out), 0);

    const pid_t child = fork();

    if (child == 0)
        register_and_exit(path);
    close(out[1]);
    while ((n = read(out[0], text + have, sizeof text - 1 - have)) > 0)
        have += (size_t)n;
    close(out[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(text, "ours late ours late early ");
}

static void
slots_that_are_filled_by_the_first_call(void **state)
{
    check_order(HED_LAZY_LIBRARY);
}

static void
slots_that_are_read_only(void **state)
{
    check_order(HED_NOW_LIBRARY);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(slots_that_are_filled_by_the_first_call),
    cmocka_unit_test(slots_that_are_read_only),
};

HED_UNIT_MAIN(tests)
