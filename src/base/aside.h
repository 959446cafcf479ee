/* Addresses set aside: nothing of this process lands there until they are given back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Exactly [at, at + size), both multiples of a page; no memory is behind them. False: some of it is
 * taken. */
bool hed_set_aside(uint64_t at, uint64_t size);
