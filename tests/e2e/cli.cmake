# The heddle command from the outside.

if(TARGET heddle)
    # Not with heddle's flags: it is loaded like a driver, without a sanitizer.
    add_library(e2e_fake_driver MODULE fake_driver.c)
    set_target_properties(e2e_fake_driver PROPERTIES PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1)

    list(JOIN HEDDLE_SANITIZE "+" sanitizers)
    heddle_program_test(e2e.cli LABELS e2e TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/run_cli.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_SANITIZE=${sanitizers})
    heddle_program_test(e2e.look_cli LABELS e2e TIMEOUT 300
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/look_cli.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_SANITIZE=${sanitizers}
            HED_FAKE_DRIVER=$<TARGET_FILE:e2e_fake_driver>)
    if(TARGET example_array AND TARGET heddled AND NOT HEDDLE_SANITIZE)
        heddle_program_test(e2e.demo LABELS e2e TIMEOUT 300
            COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/demo.py
            ENV HED_BUILD=${PROJECT_BINARY_DIR})
    endif()
endif()
