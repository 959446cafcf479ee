# Memory limits: over nothing, the CPU GPU, and a GPU that is elsewhere.

if(TARGET libcuda AND TARGET libnvidia_ml)
    add_executable(e2e_quota quota.c quota_many.c)
    target_link_libraries(e2e_quota PRIVATE heddle_harness ${CMAKE_DL_LIBS} Threads::Threads)
    heddle_needs_gen(e2e_quota)
    add_dependencies(e2e_quota libcuda libnvidia_ml)
    set(quota_env HEDDLE_CONFIG= HED_LIBCUDA=$<TARGET_FILE:libcuda>
        HED_LIBNVML=$<TARGET_FILE:libnvidia_ml>)
    heddle_program_test(e2e.quota_null LABELS e2e TIMEOUT 120 COMMAND e2e_quota hollow
        ENV HEDDLE_GPU=null ${quota_env})
    if(TARGET backend_cpu AND TARGET compiler_llvm)
        add_dependencies(e2e_quota backend_cpu)
        heddle_program_test(e2e.quota_cpu LABELS e2e TIMEOUT 300 COMMAND e2e_quota
            ENV HEDDLE_GPU=cpu ${quota_env})
        heddle_program_test(e2e.quota_devices LABELS e2e TIMEOUT 120
            COMMAND e2e_quota whole devices ENV HEDDLE_GPU=cpu:h100x2 ${quota_env})
    endif()
    if(TARGET backend_remote AND TARGET heddled AND TARGET heddle AND TARGET backend_cpu)
        add_dependencies(e2e_quota backend_remote heddled heddle)
        heddle_program_test(e2e.quota_remote LABELS e2e remote TIMEOUT 300
            COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/serve shm $<TARGET_FILE_DIR:libcuda>
                    $<TARGET_FILE:heddle> cpu:h200 $<TARGET_FILE:e2e_quota> far
            ENV ${quota_env})
    endif()
endif()
