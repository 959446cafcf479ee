# Record mode, over a driver that is made up.
heddle_unit_test(layer_record SOURCES layer_record.c ${registry} LIBS ${everything})
heddle_unit_test(layer_record_order SOURCES layer_record_order.c ${registry} LIBS ${everything})
heddle_unit_test(layer_record_sched SOURCES layer_record_sched.c ${registry} LIBS ${everything})
heddle_unit_test(layer_record_capture SOURCES layer_record_capture.c ${registry} LIBS ${everything})
