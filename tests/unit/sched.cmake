# Sharing a GPU: policies on a simulated clock, the layer over a driver that is made up.
heddle_unit_test(sched_policy SOURCES sched_policy.c LIBS heddle_sched)
heddle_unit_test(layer_sched SOURCES layer_sched.c ${registry} LIBS ${everything})
