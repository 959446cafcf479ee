# Modules, libraries and launches over each transport, on the CPU GPU and on nothing.

if(TARGET backend_remote AND TARGET heddled AND TARGET heddle AND TARGET libcuda)
    add_executable(e2e_remote_modules remote_modules.c)
    target_link_libraries(e2e_remote_modules PRIVATE heddle_harness ${CMAKE_DL_LIBS}
        Threads::Threads)
    heddle_needs_gen(e2e_remote_modules)
    add_dependencies(e2e_remote_modules libcuda backend_remote heddled heddle)
    set(remote_modules ${PROJECT_SOURCE_DIR}/tests/harness/serve)
    foreach(transport shm tcp)
        heddle_program_test(e2e.remote_modules_${transport}_null LABELS e2e remote TIMEOUT 300
            COMMAND ${remote_modules} ${transport} $<TARGET_FILE_DIR:libcuda>
                    $<TARGET_FILE:heddle> null $<TARGET_FILE:e2e_remote_modules> hollow
            ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>)
        if(TARGET backend_cpu AND TARGET compiler_llvm)
            heddle_program_test(e2e.remote_modules_${transport}_cpu LABELS e2e remote TIMEOUT 300
                COMMAND ${remote_modules} ${transport} $<TARGET_FILE_DIR:libcuda>
                        $<TARGET_FILE:heddle> cpu:h200 $<TARGET_FILE:e2e_remote_modules>
                ENV HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>)
        endif()
    endforeach()
    if(TARGET backend_cpu AND TARGET compiler_llvm)
        heddle_program_test(e2e.remote_modules_eager LABELS e2e remote TIMEOUT 300
            COMMAND ${remote_modules} shm $<TARGET_FILE_DIR:libcuda> $<TARGET_FILE:heddle>
                    cpu:h200 $<TARGET_FILE:e2e_remote_modules>
            ENV HEDDLE_CONFIG= CUDA_MODULE_LOADING=EAGER HED_LIBCUDA=$<TARGET_FILE:libcuda>)
    endif()
endif()
