# What a worker does with messages of clients. It needs a session, and so the registry.
set(worker_libs heddle_worker heddle_layers heddle_backends heddle_core heddle_trace heddle_put
    heddle_get heddle_handles)
set(registry ${PROJECT_SOURCE_DIR}/src/registry.c)
foreach(target call worker)
    heddle_fuzz_target(wire_${target}
        SOURCES wire_${target}.c worker_play.c worker_null.c ${registry}
        LIBS ${worker_libs} CORPUS corpus/wire_${target})
    # The same on the CPU GPU. All of the driver: its tables of calls are found by name only.
    if(TARGET heddle_cpu AND NOT "thread" IN_LIST HEDDLE_SANITIZE)
        heddle_fuzz_target(wire_${target}_cpu
            SOURCES wire_${target}.c worker_play.c worker_cpu.c ${registry}
                    ${PROJECT_SOURCE_DIR}/src/backends/cpu/cpu.c
            LIBS ${worker_libs} heddle_cpu
                 -Wl,--whole-archive heddle_driver -Wl,--no-whole-archive
            CORPUS corpus/wire_${target})
        if(HEDDLE_FUZZ) # products of 128 bits that are checked need more than libgcc has
            target_link_options(fuzz_wire_${target}_cpu PRIVATE -rtlib=compiler-rt)
        endif()
    endif()
endforeach()
heddle_fuzz_target(wire_hello SOURCES wire_hello.c ${registry} LIBS ${worker_libs}
    CORPUS corpus/wire_hello)
# The bridge: messages of QEMU, and memory of a guest.
foreach(target vhost queue)
    heddle_fuzz_target(vm_${target} SOURCES vm_${target}.c vm_play.c LIBS heddle_vm
        CORPUS corpus/vm_${target} RUNS 5000)
endforeach()
