# The worker's end of a channel whose client scribbles over the shared memory.
heddle_fuzz_target(wire_ring SOURCES wire_ring.c LIBS heddle_wire CORPUS corpus/wire_ring)
# Addresses of servers.
heddle_fuzz_target(wire_address SOURCES wire_address.c LIBS heddle_wire
    CORPUS corpus/wire_address)
# Orders to clients, and their reports.
heddle_fuzz_target(wire_order SOURCES wire_order.c LIBS heddle_wire CORPUS corpus/wire_order)
# TLS records of a peer that knows the keys, and of one that does not. Each end takes milliseconds
# to make.
get_target_property(wire_definitions heddle_wire INTERFACE_COMPILE_DEFINITIONS)
if("HED_HAVE_OPENSSL" IN_LIST wire_definitions)
    heddle_fuzz_target(wire_records SOURCES wire_records.c LIBS heddle_wire
        CORPUS corpus/wire_records RUNS 3000)
endif()
