# What fails between a client and its worker, at every message. Not under sanitizers, with which the
# many clients take too long.

if(TARGET backend_remote AND TARGET heddled AND TARGET heddle AND TARGET backend_cpu
   AND TARGET compiler_llvm AND NOT HEDDLE_SANITIZE)
    add_executable(e2e_remote_faults remote_faults.c)
    target_link_libraries(e2e_remote_faults PRIVATE heddle_harness ${CMAKE_DL_LIBS}
        Threads::Threads)
    heddle_needs_gen(e2e_remote_faults)
    add_dependencies(e2e_remote_faults libcuda backend_remote heddled heddle)
    add_executable(e2e_remote_lives remote_lives.c)
    target_link_libraries(e2e_remote_lives PRIVATE heddle_harness ${CMAKE_DL_LIBS} Threads::Threads)
    heddle_needs_gen(e2e_remote_lives)
    add_dependencies(e2e_remote_lives libcuda backend_remote heddled heddle)
    heddle_program_test(e2e.remote_lives LABELS e2e remote TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/remote_lives.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_LIVES=$<TARGET_FILE:e2e_remote_lives>
            HED_LIBCUDA=$<TARGET_FILE:libcuda>)
    add_executable(e2e_remote_latency remote_latency.c)
    target_link_libraries(e2e_remote_latency PRIVATE heddle_harness ${CMAKE_DL_LIBS})
    heddle_needs_gen(e2e_remote_latency)
    add_dependencies(e2e_remote_latency libcuda backend_remote heddled heddle)
    heddle_program_test(e2e.remote_latency LABELS e2e remote TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/remote_latency.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_LATENCY=$<TARGET_FILE:e2e_remote_latency>
            HED_LIBCUDA=$<TARGET_FILE:libcuda> HED_NVCC=$<$<BOOL:${HEDDLE_NVCC}>:${HEDDLE_NVCC}>)
    foreach(case Proxied Deaths)
        string(TOLOWER ${case} name)
        heddle_program_test(e2e.remote_faults_${name} LABELS e2e remote TIMEOUT 300
            COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/remote_faults.py ${case}
            ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_CLIENT=$<TARGET_FILE:e2e_remote_faults>
                HED_LIBCUDA=$<TARGET_FILE:libcuda>
                HED_DEBUG_BUILD=$<BOOL:${HEDDLE_DEBUG}>)
    endforeach()
endif()
