# Code on a worker, as nvcc and NVIDIA's runtimes make programs use it; a second client finds the
# images of the first. The program checks itself.
if(HEDDLE_NVCC AND NOT HEDDLE_SANITIZE AND TARGET heddled AND TARGET compiler_llvm)
    heddle_program_test(e2e.remote_code LABELS e2e remote slow TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/remote_code.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_NVCC=${HEDDLE_NVCC})
endif()
