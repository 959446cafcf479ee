/* Counting calls through NVIDIA's private export tables.
 *
 * The tables cannot be replaced by copies: NVIDIA's runtime hashes their addresses. Their entries
 * can be replaced in place by stubs that count and jump on (core/foreign.h). Off by default: it
 * writes into NVIDIA's data.
 */
#pragma once

#include "gen/cuda_abi.h"

/* In the child of a fork. */
void hed_gpu_tables_forked(void);

/* Puts counting stubs into the table, once; later requests for it change nothing. */
void hed_gpu_count_table(const void *table, const CUuuid *id);
