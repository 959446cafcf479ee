# The injection library: on a driver and a CUPTI that are made up, and against NVIDIA's headers.

if(TARGET heddle AND TARGET libheddle_inject)
    add_library(e2e_inject_fake MODULE inject_fake.c inject_fake_cupti.c)
    target_link_libraries(e2e_inject_fake PRIVATE heddle_flags heddle_gen_headers
        ${CMAKE_DL_LIBS} Threads::Threads)
    set_target_properties(e2e_inject_fake PROPERTIES PREFIX "")
    heddle_needs_gen(e2e_inject_fake)
    add_executable(e2e_inject_work inject_work.c)
    target_link_libraries(e2e_inject_work PRIVATE heddle_flags heddle_gen_headers
        ${CMAKE_DL_LIBS} Threads::Threads)
    heddle_needs_gen(e2e_inject_work)
    add_dependencies(e2e_inject_work heddle libheddle_inject libcuda libnvidia_ml)
    set(classes Hold Gate Trace Harmless)
    # A sanitizer's library is one more that is needed, and wants to be preloaded first.
    if(NOT HEDDLE_SANITIZE)
        list(APPEND classes Words)
    endif()
    foreach(class ${classes})
        heddle_program_test(e2e.inject.${class} LABELS e2e TIMEOUT 200
            COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/inject_cli.py ${class}
            ENV HED_BUILD=${PROJECT_BINARY_DIR} HED_WORK=$<TARGET_FILE:e2e_inject_work>
                HED_FAKE=$<TARGET_FILE:e2e_inject_fake>)
    endforeach()
endif()

# In the toolkit's own folder or, in older ones, in CUPTI's.
find_path(HEDDLE_CUPTI_INCLUDE cupti.h
    PATHS ${HEDDLE_CUDA_INCLUDE} ${HEDDLE_CUDA_INCLUDE}/../extras/CUPTI/include NO_DEFAULT_PATH
    DOC "Folder of CUPTI's headers")
mark_as_advanced(HEDDLE_CUPTI_INCLUDE)
if(HEDDLE_CUPTI_INCLUDE)
    heddle_summary("cupti.h" "${HEDDLE_CUPTI_INCLUDE}")
    add_executable(e2e_inject_layout inject_layout.c)
    target_link_libraries(e2e_inject_layout PRIVATE heddle_flags)
    target_include_directories(e2e_inject_layout SYSTEM PRIVATE ${HEDDLE_CUPTI_INCLUDE}
        ${HEDDLE_CUDA_INCLUDE})
    heddle_program_test(e2e.inject.layout LABELS e2e COMMAND e2e_inject_layout)
    heddle_program_test(e2e.inject.params LABELS e2e
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/inject_params.py
                ${HEDDLE_CUPTI_INCLUDE}/generated_cuda_meta.h ${HEDDLE_GEN_DIR}/cuda_calls.h)
else()
    heddle_summary("cupti.h" "not found: its structures are not checked")
endif()
