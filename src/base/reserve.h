/* Reserving addresses, so that nothing of this process is mapped there until they are unmapped. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reserves exactly [at, at + size), both multiples of a page, without memory behind them. False if
 * some of these addresses are in use. */
bool hed_reserve_addresses(uint64_t at, uint64_t size);
