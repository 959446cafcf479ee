# Graphs and NVML with the GPU in this process, and in another one.

if(TARGET backend_cpu AND TARGET backend_remote AND TARGET libcuda)
    set(serve ${PROJECT_SOURCE_DIR}/tests/harness/serve)
    foreach(program remote_graphs remote_nvml)
        add_executable(e2e_${program} ${program}.c)
        target_link_libraries(e2e_${program} PRIVATE heddle_harness ${CMAKE_DL_LIBS})
        heddle_needs_gen(e2e_${program})
        add_dependencies(e2e_${program} libcuda libnvidia_ml backend_cpu backend_remote heddled)
        set(e2e_env HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>
            HED_LIBNVML=$<TARGET_FILE:libnvidia_ml>
            HEDDLE_CACHE=${PROJECT_BINARY_DIR}/scratch/e2e.${program}/cache)
        heddle_program_test(e2e.${program}.cpu LABELS e2e COMMAND e2e_${program}
            ENV ${e2e_env} HEDDLE_GPU=cpu:h200)
        foreach(transport shm unix tcp)
            heddle_program_test(e2e.${program}.${transport} LABELS e2e remote
                COMMAND ${serve} ${transport} $<TARGET_FILE_DIR:libcuda> $<TARGET_FILE:heddle>
                        cpu:h200 $<TARGET_FILE:e2e_${program}>
                ENV ${e2e_env})
        endforeach()
    endforeach()
endif()
