# Kernels through the compiler, where there is LLVM.
if(HEDDLE_LLVM)
    foreach(module run atomic matrix)
        heddle_unit_test(ptx_${module}
            SOURCES ptx_${module}.c ${PROJECT_SOURCE_DIR}/tests/ptx/exec/harness.c
            LIBS heddle_ptx_llvm heddle_ptx)
    endforeach()
endif()
