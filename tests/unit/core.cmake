# Calls, layers, settings, the writer of traces, calls as bytes. What stands on a session needs the
# registry, which is no library.
set(registry ${PROJECT_SOURCE_DIR}/src/registry.c)
set(everything heddle_layers heddle_backends heddle_core heddle_trace heddle_put heddle_get)

heddle_unit_test(base_pack SOURCES base_pack.c LIBS heddle_base)
heddle_unit_test(base_names SOURCES base_names.c LIBS heddle_base heddle_names)

foreach(module config errors foreign stats)
    heddle_unit_test(core_${module} SOURCES core_${module}.c LIBS heddle_core)
endforeach()
heddle_unit_test(core_layer SOURCES core_layer.c ${registry} LIBS ${everything})
heddle_unit_test(layer_fault SOURCES layer_fault.c ${registry} LIBS ${everything})
heddle_unit_test(gpu_find SOURCES gpu_find.c LIBS heddle_locate)

heddle_unit_test(trace_ring SOURCES trace_ring.c LIBS heddle_trace)
set(env)
if("thread" IN_LIST HEDDLE_SANITIZE)
    # A child starts a writer of its own.
    set(env ENV TSAN_OPTIONS=halt_on_error=1:die_after_fork=0)
endif()
heddle_unit_test(trace_write SOURCES trace_write.c LIBS heddle_trace ${env})

# What fills the arguments of every call is made out of the spec.
set(fillers)
foreach(api cuda nvml)
    set(filler ${CMAKE_CURRENT_BINARY_DIR}/${api}_fill.c)
    string(TOUPPER ${api} API)
    add_custom_command(
        OUTPUT ${filler}
        COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/harness/emit_fill.py
                ${PROJECT_SOURCE_DIR}/spec/${api} ${filler}
        DEPENDS ${HEDDLE_GEN_${API}} ${PROJECT_SOURCE_DIR}/tests/harness/emit_fill.py
        COMMENT "Generating fillers of ${api} calls")
    list(APPEND fillers ${filler})
    # Long and dull: an optimiser would be busy with it for minutes.
    set_source_files_properties(${filler} PROPERTIES COMPILE_OPTIONS -O0)
endforeach()
if(HEDDLE_CMOCKA)
    add_library(unit_fill STATIC ${fillers})
    target_link_libraries(unit_fill PUBLIC heddle_harness heddle_gen_headers heddle_base)
    heddle_needs_gen(unit_fill)
    heddle_unit_test(wire_calls SOURCES wire_calls.c LIBS heddle_put heddle_get)
    heddle_unit_test(wire_roundtrip SOURCES wire_roundtrip.c
        LIBS unit_fill heddle_put heddle_get heddle_core)
    heddle_unit_test(wire_schema SOURCES wire_schema.c
        LIBS unit_fill heddle_put heddle_trace heddle_names heddle_core)
endif()
