/* The functions in the export tables that do something: table_slots.c. NVIDIA's libraries call them
 * directly, without a layer. All have C's calling convention and return a CUresult unless declared
 * otherwise. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/context/context.h"

/* An entry of a table: a function of any type. */
typedef void (*hed_slot)(void);

/* The number of words that say which runtime functions a tool wants to be told of. The runtime of
 * CUDA 13.0 needs more than 522 and 13; both grow with each release. */
#define HED_HOOK_CALLS 4096
#define HED_HOOK_EVENTS 64

/* CUDART_INTERFACE */
CUresult hed_slot_load_wrapper(CUmodule *out, const void *wrapper);
CUresult hed_slot_load_wrapper_with(CUmodule *out, const void *wrapper, void *a, void *b,
                                    unsigned c);
CUresult hed_slot_load_header_with(const void *header, CUmodule *out, void *a, void *b, unsigned c);
CUresult hed_slot_primary(CUcontext *out, CUdevice ordinal);
CUresult hed_slot_graphics_device(CUdevice ordinal, void *data);
void hed_slot_module_gone(size_t n);
CUresult hed_slot_load_compilers(void);

/* TOOLS_RUNTIME_CALLBACK_HOOKS */
void hed_slot_hook_calls(const uint32_t **flags, size_t *count);
void hed_slot_hook_events(const uint32_t **flags, size_t *count);

/* TOOLS_TLS */
CUresult hed_slot_current(CUcontext *out);

/* CONTEXT_LOCAL_STORAGE */
CUresult hed_slot_storage_put(CUcontext handle, void *key, void *value, hed_storage_dtor dtor);
CUresult hed_slot_storage_remove(CUcontext handle, void *key);
CUresult hed_slot_storage_get(void **value, CUcontext handle, void *key);

/* CONTEXT_CHECKS */
CUresult hed_slot_check_context(CUcontext handle, uint32_t *kind, const void **more);
uint32_t hed_slot_check_nothing(void);

/* INTEGRITY_CHECK. The addresses are part of the answer, and tables.c knows them. */
CUresult hed_slot_integrity(uint32_t version, uint64_t seconds, uint8_t out[16]);
extern const hed_slot hed_table_interface[];
extern const hed_slot hed_table_integrity[];

/* ERROR_LOG */
void hed_slot_log(const char *component, int level, const char *format, va_list ap);
void hed_slot_log_device(void);

/* 21318C60, 6E163FBE, 0CA50B8C */
CUresult hed_slot_context_id(CUcontext handle, uint32_t *id);
CUresult hed_slot_stream_id(CUcontext handle, CUstream stream, uint64_t *id);
CUresult hed_slot_stream(CUcontext handle, CUstream given, CUstream *out, uint32_t per_thread);
typedef uintptr_t (*hed_slot_function_fn)(void *data, CUfunction function, const char *name);
uint32_t hed_slot_each_function(CUcontext handle, CUmodule module, hed_slot_function_fn tell,
                                void *data);
CUresult hed_slot_create_context(CUcontext *out, unsigned flags, CUdevice ordinal);

/* 1734DC26 */
CUresult hed_slot_layout(const uint8_t **groups, uint64_t *more);

/* cuGetExportTable. */
extern const struct hed_cuda_ops hed_calls_table;
