# Textures and surfaces as nvcc and NVIDIA's static cudart make programs use them, on both code
# generators. The program checks itself: `env` takes the place of what compares.
if(HEDDLE_NVCC AND NOT HEDDLE_SANITIZE AND TARGET backend_cpu AND TARGET compiler_llvm)
    heddle_program_test(e2e.textures LABELS e2e slow TIMEOUT 300
        COMMAND ${PROJECT_SOURCE_DIR}/tests/cu/build_and_agree ${HEDDLE_NVCC}
                ${CMAKE_CURRENT_SOURCE_DIR}/textures.cu env
        ENV HEDDLE_GPU=cpu:h200 HEDDLE_CONFIG= LD_LIBRARY_PATH=$<TARGET_FILE_DIR:libcuda>)
    # The same with the CPU GPU in another process.
    if(TARGET backend_remote)
        heddle_program_test(e2e.textures.shm LABELS e2e slow remote TIMEOUT 300
            COMMAND ${PROJECT_SOURCE_DIR}/tests/harness/serve shm $<TARGET_FILE_DIR:libcuda>
                    $<TARGET_FILE:heddle> cpu:h200
                    ${PROJECT_SOURCE_DIR}/tests/cu/build_and_agree ${HEDDLE_NVCC}
                    ${CMAKE_CURRENT_SOURCE_DIR}/textures.cu env
            ENV HEDDLE_CONFIG= LD_LIBRARY_PATH=$<TARGET_FILE_DIR:libcuda>)
    endif()
endif()
