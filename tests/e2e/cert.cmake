# `heddle cert`, with the openssl command as the judge where there is one.

get_target_property(wire_definitions heddle_wire INTERFACE_COMPILE_DEFINITIONS)
if(TARGET heddle AND "HED_HAVE_OPENSSL" IN_LIST wire_definitions)
    heddle_program_test(e2e.cert_cli LABELS e2e TIMEOUT 120
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/cert_cli.py
        ENV HED_BUILD=${PROJECT_BINARY_DIR})
endif()
