# What makes a memory fault of ours hard to exploit, in every build: canaries on the stack, checked copies, no jump or
# return to where none belongs (CET), addresses that nobody can guess (PIE), tables that nobody can write (RELRO).
# tests/cli/hardening_test.cpp looks for each of them in the program.
include(CheckPIESupported)
check_pie_supported(OUTPUT_VARIABLE MEDUSA_PIE LANGUAGES CXX)
if(NOT CMAKE_CXX_LINK_PIE_SUPPORTED)
  message(FATAL_ERROR "the compiler links no position-independent programs, expected one that does (g++ 12 or clang++ 14): ${MEDUSA_PIE}")
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(hardening -fstack-protector-strong -fstack-clash-protection -fcf-protection=full)
# Checked copies want an optimizer, and hide from AddressSanitizer what it would find (preset dev; targets that are
# MEDUSA_SANITIZED).
set(fortified $<AND:$<CONFIG:Release>,$<NOT:$<BOOL:$<TARGET_PROPERTY:MEDUSA_SANITIZED>>>>)
set(fortify $<${fortified}:-U_FORTIFY_SOURCE> $<${fortified}:-D_FORTIFY_SOURCE=3>)
target_compile_options(medusa_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${hardening}> $<$<COMPILE_LANGUAGE:CXX>:${fortify}>)
list(JOIN hardening "," host_hardening)
target_compile_options(medusa_options INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_hardening}>)
target_link_options(medusa_options INTERFACE LINKER:-z,relro,-z,now,-z,noexecstack)
