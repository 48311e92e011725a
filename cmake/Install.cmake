# What `cmake --install` puts where, and the package that find_package(idlescope) finds.
#
#   idlescope::annotate   header-only, ranges and marks; needs nothing
#   idlescope::loader     header-only adaptors for LibTorch's data loaders
#   idlescope::recorder   libidlescope.so; a program that links it does not start without it
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(TARGET idlescope_cli)
  install(TARGETS idlescope_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(NOT CMAKE_CROSSCOMPILING)
    install(FILES ${PROJECT_BINARY_DIR}/tools/idlescope.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  endif()
endif()

if(TARGET idlescope_library)
  foreach(name annotate loader)
    add_library(idlescope_${name} INTERFACE)
    set_target_properties(idlescope_${name} PROPERTIES EXPORT_NAME ${name})
    target_include_directories(idlescope_${name} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/profiler/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_compile_features(idlescope_${name} INTERFACE cxx_std_14)
  endforeach()
  target_compile_features(idlescope_loader INTERFACE cxx_std_17)
  set_target_properties(idlescope_library PROPERTIES EXPORT_NAME recorder)
  target_include_directories(idlescope_library INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  install(TARGETS idlescope_annotate idlescope_loader idlescope_library EXPORT idlescope
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/profiler/include/idlescope
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/idlescope)
  install(EXPORT idlescope NAMESPACE idlescope:: FILE idlescopeConfig.cmake DESTINATION ${package})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/idlescopeConfigVersion.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/idlescopeConfigVersion.cmake DESTINATION ${package})
endif()
