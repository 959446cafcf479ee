/* A library that registers exit handlers when it is called, as one in C++ does for variables inside
 * functions. */
#include <stdlib.h>

__attribute__((visibility("default"))) void (*exit_order_handler)(void);

__attribute__((visibility("default"))) void
exit_order_register(void)
{
    (void)atexit(exit_order_handler);
}
