# Complete modules through the parser and the printer: the committed samples and, if nvcc is found,
# its output for cu/*.cu for several architectures; if ptxas is found, it must accept printed text.

add_executable(ptx_count ${CMAKE_CURRENT_SOURCE_DIR}/ptx_count.c)
target_link_libraries(ptx_count PRIVATE heddle_ptx heddle_base)

file(GLOB samples CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/samples/*.ptx)
heddle_program_test(ptx.parse.samples LABELS ptx COMMAND ptx_count ${samples})

if(HEDDLE_NVCC)
    file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cu/*.cu)
    foreach(program ${programs})
        get_filename_component(name ${program} NAME_WE)
        heddle_program_test(ptx.parse.nvcc.${name} LABELS ptx slow long TIMEOUT 3600
            COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/parse_nvcc.py
                    --nvcc ${HEDDLE_NVCC} --count $<TARGET_FILE:ptx_count> ${program})
        # nvcc takes minutes for some of these: they begin first, so that nothing waits for them.
        set_tests_properties(ptx.parse.nvcc.${name} PROPERTIES COST 300)
    endforeach()
    heddle_program_test(ptx.parse.ptxas LABELS ptx
        COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/parse_ptxas.py
                --nvcc ${HEDDLE_NVCC} --count $<TARGET_FILE:ptx_count> ${samples})
endif()
