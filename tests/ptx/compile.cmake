# Complete modules through the compiler: LLVM must accept the code of every kernel.
if(HEDDLE_HAS_LLVM)
    add_executable(ptx_compile ${CMAKE_CURRENT_SOURCE_DIR}/exec/ptx_compile.c)
    target_link_libraries(ptx_compile PRIVATE heddle_ptx_llvm heddle_ptx heddle_base)

    file(GLOB samples CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/samples/*.ptx)
    heddle_program_test(ptx.compile.samples LABELS ptx COMMAND ptx_compile ${samples})
    heddle_program_test(ptx.compile.confined LABELS ptx COMMAND ptx_compile -c ${samples})
endif()
