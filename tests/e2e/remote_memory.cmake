# Memory and copies over each transport, on the CPU GPU and on nothing.

if(TARGET backend_remote AND TARGET heddled AND TARGET heddle AND TARGET libcuda)
    add_executable(e2e_remote_memory remote_memory.c)
    target_link_libraries(e2e_remote_memory PRIVATE heddle_harness ${CMAKE_DL_LIBS}
        Threads::Threads)
    heddle_needs_gen(e2e_remote_memory)
    add_dependencies(e2e_remote_memory libcuda backend_remote heddled heddle)
    foreach(transport shm unix tcp)
        heddle_program_test(e2e.remote_memory_${transport}_null LABELS e2e remote TIMEOUT 300
            COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/serve ${transport}
                    $<TARGET_FILE_DIR:libcuda> $<TARGET_FILE:heddle> null
                    $<TARGET_FILE:e2e_remote_memory> hollow
            ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>)
        if(TARGET backend_cpu AND TARGET compiler_llvm)
            heddle_program_test(e2e.remote_memory_${transport}_cpu LABELS e2e remote TIMEOUT 300
                COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/serve ${transport}
                        $<TARGET_FILE_DIR:libcuda> $<TARGET_FILE:heddle> cpu:h200
                        $<TARGET_FILE:e2e_remote_memory>
                ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>)
        endif()
    endforeach()
endif()
