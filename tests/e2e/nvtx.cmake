# Ranges for profilers: a library such as theirs writes down what it is told.
if(TARGET heddle AND TARGET libcuda AND NOT HEDDLE_SANITIZE)
    set(env HED_BUILD=${PROJECT_BINARY_DIR} HED_WORK=$<TARGET_FILE:e2e_sched_work>
            HED_NVTX_TOOL=$<TARGET_FILE:e2e_nvtx_tool>)
    # NVIDIA's headers are not needed; where they are, they say whether our numbers are right.
    find_path(HEDDLE_NVTX_INCLUDE nvtx3/nvToolsExt.h
              PATHS ${HEDDLE_CUDA_INCLUDE} NO_DEFAULT_PATH DOC "Folder of nvtx3/nvToolsExt.h")
    mark_as_advanced(HEDDLE_NVTX_INCLUDE)
    if(HEDDLE_NVTX_INCLUDE)
        add_executable(e2e_nvtx_facts nvtx_facts.c)
        target_include_directories(e2e_nvtx_facts SYSTEM PRIVATE ${HEDDLE_NVTX_INCLUDE})
        target_link_libraries(e2e_nvtx_facts PRIVATE heddle_flags ${CMAKE_DL_LIBS})
        list(APPEND env HED_NVTX_FACTS=$<TARGET_FILE:e2e_nvtx_facts>)
    endif()
    if(TARGET backend_cpu AND TARGET compiler_llvm)
        list(APPEND env HED_NVTX_CPU=yes)
    endif()
    heddle_program_test(e2e.nvtx LABELS e2e TIMEOUT 200
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/nvtx.py ENV ${env})
endif()
