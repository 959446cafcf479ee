# Sharing a GPU: policies on a simulated clock, the layer over a driver that is made up.
heddle_unit_test(sched_policy SOURCES sched_policy.c LIBS heddle_sched)
heddle_unit_test(layer_sched SOURCES layer_sched.c ${registry} LIBS ${everything})

set(env)
if("thread" IN_LIST HEDDLE_SANITIZE)
    # The child of a test that has threads starts no thread of its own, but allocates.
    set(env ENV TSAN_OPTIONS=halt_on_error=1:die_after_fork=0)
endif()
heddle_unit_test(layer_sched_hostile SOURCES layer_sched_hostile.c ${registry}
    LIBS ${everything} ${env})
