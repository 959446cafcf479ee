# The worker's end of a channel whose client scribbles over the shared memory.
heddle_fuzz_target(wire_ring SOURCES wire_ring.c LIBS heddle_wire CORPUS corpus/wire_ring)
# Addresses of servers.
heddle_fuzz_target(wire_address SOURCES wire_address.c LIBS heddle_wire
    CORPUS corpus/wire_address)
