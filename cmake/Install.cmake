# cmake --install: the program, the library with its headers, and the CMake package `medusa`. cpack: the same as TGZ and
# DEB. LibTorch stays where it is and is found again (docs/guide/library.md).
set(MEDUSA_RUN_TORCH_DIR "${LIBTORCH_DIR}" CACHE PATH
  "folder with LibTorch's lib/ where the installed program runs; default: the one of the build")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(libraries base data backbone heads infer train runtime)
list(TRANSFORM libraries PREPEND medusa_)
foreach(library IN LISTS libraries)
  string(REPLACE medusa_ "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
install(TARGETS ${libraries} medusa_medusa EXPORT medusa ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/medusa FILE_SET umbrella DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(run_paths "${MEDUSA_RUN_TORCH_DIR}/lib")
set(MEDUSA_BUILT_GRAMMAR OFF)
if(TARGET medusa::xgrammar)
  set(MEDUSA_BUILT_GRAMMAR ON)
  list(APPEND run_paths "${MEDUSA_WHEELS}/tvm_ffi/lib")
  set_target_properties(medusa-grammar PROPERTIES INSTALL_RPATH "${MEDUSA_WHEELS}/tvm_ffi/lib")
  install(TARGETS medusa-grammar RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
set_target_properties(medusa-core PROPERTIES INSTALL_RPATH "${run_paths}")
install(TARGETS medusa medusa-core RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/medusa)
set(tables ${PROJECT_SOURCE_DIR}/cmake)
configure_package_config_file(${tables}/medusaConfig.cmake.in ${PROJECT_BINARY_DIR}/medusaConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/medusaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT medusa NAMESPACE medusa:: FILE medusaTargets.cmake DESTINATION ${package})
install(FILES ${PROJECT_BINARY_DIR}/medusaConfig.cmake ${PROJECT_BINARY_DIR}/medusaConfigVersion.cmake
  ${tables}/LibTorch.cmake ${tables}/Xgrammar.cmake DESTINATION ${package})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What the program and the library are linked with besides LibTorch, as Debian 12 names it.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_VENDOR "medusa.cpp")
set(CPACK_PACKAGE_CONTACT "the authors of medusa.cpp")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains Medusa heads for a language model, decodes and serves with them")
set(CPACK_STRIP_FILES TRUE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(run_packages libc6 libgcc-s1 libstdc++6 libgomp1 libyaml-cpp0.7 libfmt9 libssl3 libpcre2-8-0 libutf8proc2 libhdf5-103-1
  libedit2)
set(build_packages libyaml-cpp-dev libfmt-dev nlohmann-json3-dev libssl-dev libpcre2-dev libutf8proc-dev libhdf5-dev)
if(MEDUSA_MPI)
  list(APPEND run_packages libopenmpi3)
  list(APPEND build_packages libopenmpi-dev)
endif()
list(JOIN run_packages ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
list(JOIN build_packages ", " CPACK_DEBIAN_PACKAGE_SUGGESTS)  # for programs that use the library
include(CPack)
