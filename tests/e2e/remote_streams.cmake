# Streams, events and functions of the program over each transport, on the CPU GPU and on nothing.
# Not under ThreadSanitizer: its memory leaves no room for the addresses that both sides share.

if(TARGET backend_remote AND TARGET heddled AND TARGET heddle AND TARGET libcuda
   AND NOT "thread" IN_LIST HEDDLE_SANITIZE)
    add_executable(e2e_remote_streams remote_streams.c)
    target_link_libraries(e2e_remote_streams PRIVATE heddle_harness ${CMAKE_DL_LIBS}
        Threads::Threads)
    heddle_needs_gen(e2e_remote_streams)
    add_dependencies(e2e_remote_streams libcuda backend_remote heddled heddle)
    foreach(transport shm unix)
        heddle_program_test(e2e.remote_streams_${transport}_null LABELS e2e remote TIMEOUT 300
            COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/serve ${transport}
                    $<TARGET_FILE_DIR:libcuda> $<TARGET_FILE:heddle> null
                    $<TARGET_FILE:e2e_remote_streams> hollow
            ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>)
        if(TARGET backend_cpu AND TARGET compiler_llvm)
            heddle_program_test(e2e.remote_streams_${transport}_cpu LABELS e2e remote TIMEOUT 300
                COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/serve ${transport}
                        $<TARGET_FILE_DIR:libcuda> $<TARGET_FILE:heddle> cpu:h200
                        $<TARGET_FILE:e2e_remote_streams>
                ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>)
        endif()
    endforeach()
endif()
