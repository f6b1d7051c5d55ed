# The grammar library xgrammar from its wheel, and tvm-ffi, through which it is called without Python. Optional: without
# them infer/grammar/no_xgrammar.cpp stands for infer/grammar/xgrammar.cpp and says what to install.
#   medusa::xgrammar         headers and library of tvm-ffi; exists when both wheels are there
#   MEDUSA_XGRAMMAR_LIBRARY  xgrammar's own library, which is loaded when the first grammar is compiled
set(MEDUSA_GRAMMAR AUTO CACHE STRING "Build with xgrammar: AUTO (where its wheels lie beside LibTorch's), ON or OFF")
get_filename_component(_wheels "${LIBTORCH_DIR}" DIRECTORY)
set(MEDUSA_WHEELS "${_wheels}" CACHE PATH "folder that holds xgrammar/ and tvm_ffi/ of their wheels")
set(MEDUSA_XGRAMMAR_LIBRARY "${MEDUSA_WHEELS}/xgrammar/libxgrammar_bindings.so")
set(_ffi "${MEDUSA_WHEELS}/tvm_ffi")
if(MEDUSA_GRAMMAR STREQUAL "OFF")
  return()
endif()
if(EXISTS "${MEDUSA_XGRAMMAR_LIBRARY}" AND EXISTS "${_ffi}/lib/libtvm_ffi.so")
  add_library(medusa_xgrammar SHARED IMPORTED)
  add_library(medusa::xgrammar ALIAS medusa_xgrammar)
  set_target_properties(medusa_xgrammar PROPERTIES IMPORTED_LOCATION "${_ffi}/lib/libtvm_ffi.so"
    IMPORTED_SONAME libtvm_ffi.so INTERFACE_INCLUDE_DIRECTORIES "${_ffi}/include")
  message(STATUS "xgrammar: ${MEDUSA_WHEELS}")
elseif(MEDUSA_GRAMMAR STREQUAL "ON")
  message(FATAL_ERROR "MEDUSA_GRAMMAR is ON and xgrammar/ and tvm_ffi/ are not in '${MEDUSA_WHEELS}', expected their "
    "wheels there; run tools/setup.sh, or set MEDUSA_WHEELS")
else()
  message(STATUS "xgrammar: not found, so there is no structured output (tools/setup.sh installs it)")
endif()
