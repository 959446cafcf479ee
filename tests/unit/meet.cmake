# Where processes meet.

set(env)
if("thread" IN_LIST HEDDLE_SANITIZE)
    # Children of a test that has threads start threads of their own.
    set(env ENV TSAN_OPTIONS=halt_on_error=1:die_after_fork=0)
endif()
heddle_unit_test(meet SOURCES meet.c LIBS heddle_meet ${env})
