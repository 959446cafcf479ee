# What other projects find heddle by: find_package(heddle). The files for pkg-config are made where
# their libraries are (heddle_pkg_config in HeddleFlags.cmake).

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/heddle)
configure_package_config_file(
    ${CMAKE_CURRENT_LIST_DIR}/heddle-config.cmake.in
    ${PROJECT_BINARY_DIR}/heddle-config.cmake
    INSTALL_DESTINATION ${package_folder}
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
# Before 1.0, a minor version may change what programs see.
write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/heddle-config-version.cmake COMPATIBILITY SameMinorVersion)
install(
    FILES
        ${PROJECT_BINARY_DIR}/heddle-config.cmake
        ${PROJECT_BINARY_DIR}/heddle-config-version.cmake
    DESTINATION ${package_folder} COMPONENT libheddle-dev)
