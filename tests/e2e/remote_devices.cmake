# Several devices of a server, and several clients with a choice of them each. Not under
# ThreadSanitizer: its memory leaves no room for the addresses that both sides share.

if(TARGET backend_remote AND TARGET heddled AND TARGET heddle AND TARGET libcuda
   AND TARGET backend_cpu AND TARGET compiler_llvm AND NOT "thread" IN_LIST HEDDLE_SANITIZE)
    add_executable(e2e_remote_devices remote_devices.c)
    target_link_libraries(e2e_remote_devices PRIVATE heddle_harness ${CMAKE_DL_LIBS}
        Threads::Threads)
    heddle_needs_gen(e2e_remote_devices)
    add_dependencies(e2e_remote_devices libcuda backend_remote backend_cpu compiler_llvm heddled
        heddle)
    foreach(pair shm,cpu:h100x4 tcp,cpu:h100x2)
        string(REPLACE "," ";" pair "${pair}")
        list(GET pair 0 transport)
        list(GET pair 1 gpu)
        heddle_program_test(e2e.remote_devices_${transport} LABELS e2e remote TIMEOUT 300
            COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/serve ${transport}
                    $<TARGET_FILE_DIR:libcuda> $<TARGET_FILE:heddle> ${gpu}
                    ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/remote_devices.py ${gpu}
                    $<TARGET_FILE:e2e_remote_devices>
            ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>)
    endforeach()
endif()
