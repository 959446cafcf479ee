# Ends of processes, forks and threads while kernels run.

if(TARGET backend_cpu AND TARGET libcuda)
    add_executable(e2e_cpu_ends cpu_ends.c)
    target_link_libraries(e2e_cpu_ends PRIVATE heddle_harness ${CMAKE_DL_LIBS} Threads::Threads)
    heddle_needs_gen(e2e_cpu_ends)
    add_dependencies(e2e_cpu_ends libcuda backend_cpu)
    foreach(codegen scalar warp)
        heddle_program_test(e2e.cpu_ends_${codegen} LABELS e2e TIMEOUT 600 COMMAND e2e_cpu_ends
            ENV HEDDLE_GPU=cpu HEDDLE_CONFIG= HEDDLE_CPU_CODEGEN=${codegen}
                HED_LIBCUDA=$<TARGET_FILE:libcuda>
                HEDDLE_CACHE=${PROJECT_BINARY_DIR}/scratch/e2e.cpu_ends_${codegen}/cache
                TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:${heddle_tsan_suppressions})
    endforeach()
endif()
