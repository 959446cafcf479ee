# The devices of the CPU GPU: the command, CUDA and NVML agree, in several processes.

if(TARGET heddle AND TARGET backend_cpu)
    list(JOIN HEDDLE_SANITIZE "+" sanitizers)
    heddle_program_test(e2e.cpu_devices LABELS e2e TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/cpu_devices.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_SANITIZE=${sanitizers})
endif()
