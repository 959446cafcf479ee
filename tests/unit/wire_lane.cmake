# Lanes: one thread at a time, many threads and processes, and a hostile peer.
foreach(module lane lane_threads lane_hostile)
    heddle_unit_test(wire_${module} SOURCES wire_${module}.c LIBS heddle_wire)
endforeach()
