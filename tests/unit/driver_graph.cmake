# Graphs and captures, on a machine made of plain memory.

heddle_unit_test(driver_graph SOURCES driver_graph.c driver_fake.c LIBS heddle_driver heddle_core)
