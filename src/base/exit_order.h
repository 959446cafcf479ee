/* The order of the exit handlers of a C++ library (exit_order.c). */
#pragma once

#include <link.h>
#include <stdbool.h>

/* Before every exit handler that this library registers from now on, `before` is called, which may
 * happen several times. False if the library cannot be made to. */
bool hed_exit_order(const struct dl_phdr_info *library, void (*before)(void));
