# Textures and surfaces of the CPU GPU: the sampler, and the instructions through the compiler.
if(TARGET heddle_cpu)
    heddle_unit_test(cpu_texture SOURCES cpu_texture.c LIBS heddle_cpu m)
    if(TARGET compiler_llvm)
        heddle_unit_test(cpu_texture_code SOURCES cpu_texture_code.c LIBS heddle_cpu)
        if(TARGET unit_cpu_texture_code)
            add_dependencies(unit_cpu_texture_code compiler_llvm)
            target_compile_definitions(unit_cpu_texture_code PRIVATE
                HED_COMPILER="$<TARGET_FILE:compiler_llvm>")
        endif()
    endif()
endif()
