# Threads, host memory and functions of the program over each transport. Not under ThreadSanitizer:
# its memory leaves no room for the addresses that both sides share.

if(TARGET backend_remote AND TARGET heddled AND TARGET heddle AND TARGET libcuda
   AND TARGET backend_cpu AND TARGET compiler_llvm AND NOT "thread" IN_LIST HEDDLE_SANITIZE)
    add_executable(e2e_remote_order remote_order.c)
    target_link_libraries(e2e_remote_order PRIVATE heddle_harness ${CMAKE_DL_LIBS}
        Threads::Threads)
    heddle_needs_gen(e2e_remote_order)
    add_dependencies(e2e_remote_order libcuda backend_remote backend_cpu compiler_llvm heddled
        heddle)
    foreach(transport shm unix tcp)
        heddle_program_test(e2e.remote_order_${transport} LABELS e2e remote TIMEOUT 300
            COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/serve ${transport}
                    $<TARGET_FILE_DIR:libcuda> $<TARGET_FILE:heddle> cpu:h200
                    $<TARGET_FILE:e2e_remote_order>
            ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>)
    endforeach()
endif()
