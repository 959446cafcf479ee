# GPU activity and the trace's files; what threads do to its writer is in core.cmake.
heddle_unit_test(trace_activity SOURCES trace_activity.c LIBS heddle_trace)
heddle_unit_test(trace_file SOURCES trace_file.c LIBS heddle_trace)

# The reader of traces. trace_stats is part of the command, which is no library.
foreach(module print read schema)
    heddle_unit_test(trace_${module} SOURCES trace_${module}.c LIBS heddle_trace)
endforeach()

if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/trace_stats.c)
    heddle_unit_test(trace_stats
        SOURCES trace_stats.c ${PROJECT_SOURCE_DIR}/src/cli/trace_stats.c LIBS heddle_flags)
endif()
