# The quota layer, over a device that counts.

set(env)
if("thread" IN_LIST HEDDLE_SANITIZE)
    set(env ENV TSAN_OPTIONS=halt_on_error=1:die_after_fork=0)
endif()
foreach(test layer_quota layer_quota_calls layer_quota_group layer_quota_view)
    heddle_unit_test(${test}
        SOURCES ${test}.c layer_quota_make.c ${PROJECT_SOURCE_DIR}/src/registry.c
        LIBS heddle_layers heddle_backends heddle_core heddle_trace heddle_put heddle_get ${env})
endforeach()
