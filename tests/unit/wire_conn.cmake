# Connections between a client and its worker.
heddle_unit_test(wire_address SOURCES wire_address.c LIBS heddle_wire)
heddle_unit_test(wire_conn SOURCES wire_conn.c LIBS heddle_wire)
heddle_unit_test(wire_silent SOURCES wire_silent.c LIBS heddle_wire)
get_target_property(wire_definitions heddle_wire INTERFACE_COMPILE_DEFINITIONS)
if("HED_HAVE_OPENSSL" IN_LIST wire_definitions)
    heddle_unit_test(wire_tls SOURCES wire_tls.c LIBS heddle_wire)
endif()
