# The handles and addresses in calls.
heddle_unit_test(wire_handles SOURCES wire_handles.c LIBS heddle_handles)
