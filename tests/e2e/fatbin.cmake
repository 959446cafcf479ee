# `heddle fatbin` on files made by harness/fatbin_file.py, on the fuzz corpora, and on what nvcc
# makes where there is one; there with cuobjdump as the judge, if the toolkit has it.

if(TARGET heddle AND TARGET heddle_fatbin)
    heddle_program_test(e2e.fatbin_cli LABELS e2e TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/fatbin_cli.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_NVCC=${HEDDLE_NVCC})
endif()
