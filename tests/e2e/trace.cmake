# `heddle trace` on files made by harness/trace_file.py.

if(TARGET heddle)
    heddle_program_test(e2e.trace_cli LABELS e2e TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/trace_cli.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR})
    heddle_program_test(e2e.trace_gpu LABELS e2e TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/trace_gpu.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR})
endif()
