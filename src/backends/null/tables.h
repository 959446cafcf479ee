/* NVIDIA's private tables, as far as its runtime cannot do without them: tables.c.
 *
 * The soft driver has all that is known of them (driver/table). Here there are no contexts, streams
 * or modules to ask about, so the tables of libraries such as cuBLAS are missing, and the others
 * know one context. */
#pragma once

#include "core/layer.h"

CUresult hed_null_table(const void **table, const CUuuid *id);
