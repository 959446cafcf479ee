# The server's listener: its ledger, who may come in and how many.

heddle_unit_test(server_ledger SOURCES server_ledger.c LIBS heddle_server)
heddle_unit_test(server_limits SOURCES server_limits.c LIBS heddle_server)
heddle_unit_test(server_lanes SOURCES server_lanes.c LIBS heddle_server libheddle)
