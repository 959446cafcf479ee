# The CPU GPU: the loader, the engine with kernels written in C, and PTX through the whole machine.

# An object file as the compiler makes them: no sanitizer, no stack protector, no profile.
add_library(unit_ptx_load_object OBJECT ptx_load_object.c)
target_include_directories(unit_ptx_load_object PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(unit_ptx_load_object PRIVATE
    -O2 -fPIC -fno-stack-protector -fno-asynchronous-unwind-tables -fvisibility=hidden)
heddle_unit_test(ptx_load SOURCES ptx_load.c LIBS heddle_ptx)
if(TARGET unit_ptx_load)
    add_dependencies(unit_ptx_load unit_ptx_load_object)
    target_compile_definitions(unit_ptx_load PRIVATE
        HED_OBJECT="$<TARGET_OBJECTS:unit_ptx_load_object>")
endif()

if(TARGET heddle_cpu)
    foreach(module cache engine faults lanes output)
        heddle_unit_test(cpu_${module} SOURCES cpu_${module}.c LIBS heddle_cpu)
    endforeach()
    if(TARGET compiler_llvm)
        heddle_unit_test(cpu_code SOURCES cpu_code.c LIBS heddle_cpu)
        if(TARGET unit_cpu_code)
            add_dependencies(unit_cpu_code compiler_llvm)
            target_compile_definitions(unit_cpu_code PRIVATE
                HED_COMPILER="$<TARGET_FILE:compiler_llvm>")
        endif()
    endif()
endif()
