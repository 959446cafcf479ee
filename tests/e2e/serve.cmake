# The server's life: it needs no GPU, and no client that goes beyond its first words.

if(TARGET heddle AND TARGET heddled)
    heddle_program_test(e2e.serve_life LABELS e2e TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/serve_life.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR})
    heddle_program_test(e2e.serve_doors LABELS e2e TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/serve_doors.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR})
endif()
if(TARGET heddle AND TARGET heddled AND TARGET backend_remote)
    heddle_program_test(e2e.remote_words LABELS e2e TIMEOUT 120
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/remote_words.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR})
endif()
if(TARGET heddle AND TARGET heddled AND TARGET backend_cpu AND TARGET backend_remote)
    list(JOIN HEDDLE_SANITIZE "+" sanitizers)
    heddle_program_test(e2e.serve_clients LABELS e2e TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/serve_clients.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_SANITIZE=${sanitizers})
endif()
