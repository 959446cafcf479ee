# What a worker does with messages of clients. It needs a session, and so the registry.
set(worker_libs heddle_worker heddle_layers heddle_backends heddle_core heddle_trace heddle_put
    heddle_get heddle_handles)
set(registry ${PROJECT_SOURCE_DIR}/src/registry.c)
foreach(target call worker)
    heddle_fuzz_target(wire_${target} SOURCES wire_${target}.c worker_play.c ${registry}
        LIBS ${worker_libs} CORPUS corpus/wire_${target})
endforeach()
heddle_fuzz_target(wire_hello SOURCES wire_hello.c ${registry} LIBS ${worker_libs}
    CORPUS corpus/wire_hello)
heddle_fuzz_target(serve_config SOURCES serve_config.c ${registry}
    LIBS heddle_listener ${worker_libs} CORPUS corpus/serve_config)
