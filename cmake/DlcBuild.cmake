# Compiler flags, the LLVM/MLIR archives, and the functions by which every folder declares its libraries and tests.
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC) # one precompiled header serves executables and libraries
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or Asan" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
# -O1 keeps stack use of the sanitized MLIR parsers bounded; the archives of LLVM are not instrumented, so checks of
# containers' annotations across that border would be false alarms (see tests/asan.env).
set(CMAKE_CXX_FLAGS_ASAN "-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined")
set(CMAKE_C_FLAGS_ASAN "${CMAKE_CXX_FLAGS_ASAN}")
set(CMAKE_EXE_LINKER_FLAGS_ASAN "-fsanitize=address,undefined")
set(CMAKE_SHARED_LINKER_FLAGS_ASAN "-fsanitize=address,undefined")
set(CMAKE_MODULE_LINKER_FLAGS_ASAN "-fsanitize=address,undefined")
# The oldest CPU served is x86-64-v3. Nothing is contracted unless the source says fma.
add_compile_options(-march=x86-64-v3 -ffp-contract=off -ffunction-sections -fdata-sections
                    -Wall -Wextra -Wno-unused-parameter -fno-semantic-interposition)

# Objects are the same in every checkout: paths are relative to the checkout, and a precompiled header is identified by
# the .sum beside it (its text, flags and compiler) instead of its bytes, which hold absolute paths.
find_program(DLC_CCACHE ccache)
if(DLC_CCACHE)
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_PCH_EXTSUM=1 CCACHE_IGNOREOPTIONS=-ffile-prefix-map=*
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${DLC_CCACHE})
endif()
add_link_options(-fuse-ld=lld -Wl,--gc-sections)
find_package(Threads REQUIRED)

set(DLC_LLVM_ROOT /usr/lib/llvm-19 CACHE PATH "LLVM 19 with MLIR's headers and archives")
find_program(DLC_LLVM_TBLGEN llvm-tblgen PATHS ${DLC_LLVM_ROOT}/bin NO_DEFAULT_PATH REQUIRED)
find_program(DLC_MLIR_TBLGEN mlir-tblgen PATHS ${DLC_LLVM_ROOT}/bin NO_DEFAULT_PATH REQUIRED)

# The archives themselves: the exported CMake targets would pull in the shared libLLVM. Of LLVM's targets only X86.
# Compression is linked statically too, so that a binary depends on the C and C++ runtimes alone.
file(GLOB _mlir_archives ${DLC_LLVM_ROOT}/lib/libMLIR*.a)
file(GLOB _llvm_archives ${DLC_LLVM_ROOT}/lib/libLLVM*.a)
list(FILTER _mlir_archives EXCLUDE REGEX "CAPI|Runner")
string(CONCAT _foreign_targets "libLLVM(AArch64|AMDGPU|ARM|AVR|BPF|Hexagon|Lanai|LoongArch|M68k|MSP430|Mips|NVPTX|"
       "PowerPC|RISCV|Sparc|SystemZ|VE[A-Z]|WebAssembly|XCore|Xtensa)")
list(FILTER _llvm_archives EXCLUDE REGEX ${_foreign_targets})
find_library(DLC_LIBZ libz.a REQUIRED)
find_library(DLC_LIBZSTD libzstd.a REQUIRED)
add_library(dlc_mlir INTERFACE)
target_include_directories(dlc_mlir SYSTEM INTERFACE ${DLC_LLVM_ROOT}/include)
target_link_libraries(dlc_mlir INTERFACE ${_mlir_archives} ${_llvm_archives} ${DLC_LIBZ} ${DLC_LIBZSTD}
                      ${CMAKE_DL_LIBS} m Threads::Threads)

# MLIR's headers are most of a translation unit's cost (4.5 s without, 0.7 s with the precompiled ones).
option(DLC_PCH "Precompile MLIR's headers" ON)
if(DLC_PCH)
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/MlirPch.txt _pch_headers REGEX "^[^#]")
  list(TRANSFORM _pch_headers REPLACE "^(.+)$" "<\\1>")
  file(WRITE ${CMAKE_BINARY_DIR}/pch/MlirPch.cpp.in "// Only carries the precompiled header.\n")
  configure_file(${CMAKE_BINARY_DIR}/pch/MlirPch.cpp.in ${CMAKE_BINARY_DIR}/pch/MlirPch.cpp COPYONLY)
  add_library(dlc_mlir_pch OBJECT ${CMAKE_BINARY_DIR}/pch/MlirPch.cpp)
  target_link_libraries(dlc_mlir_pch PRIVATE dlc_mlir)
  target_compile_options(dlc_mlir_pch PRIVATE -Xclang -fno-pch-timestamp)
  target_precompile_headers(dlc_mlir_pch PRIVATE ${_pch_headers})
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} --version OUTPUT_VARIABLE _compiler_version)
  get_directory_property(_pch_options COMPILE_OPTIONS)
  list(FILTER _pch_options EXCLUDE REGEX "file-prefix-map")
  string(SHA256 _pch_sum "${_pch_headers};${_compiler_version};${_pch_options};${CMAKE_CXX_FLAGS};${CMAKE_BUILD_TYPE}")
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/dlc_mlir_pch.dir/cmake_pch.hxx.pch.sum "${_pch_sum}\n")
endif()

# dlc_use_mlir(target): MLIR's include path, archives and precompiled headers. Only `dialects`, `compiler`,
# `frontend/import`, `tools` and the tests of those may ask for it.
function(dlc_use_mlir name)
  target_link_libraries(${name} PUBLIC dlc_mlir)
  if(DLC_PCH)
    # By hand and relative to the build folder, where Ninja compiles, so that the command is the same in every checkout.
    set(pch CMakeFiles/dlc_mlir_pch.dir/cmake_pch.hxx.pch)
    target_compile_options(${name} PRIVATE "SHELL:-include-pch ${pch}")
    get_target_property(sources ${name} SOURCES)
    set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/${pch})
    add_dependencies(${name} dlc_mlir_pch)
  endif()
endfunction()

# dlc_library(name [MLIR] [DIRS d...] [EXCLUDE regex] [SOURCES s...] [DEPS lib...]): a static library of all .cpp files
# in DIRS (default: the current folder, not its subfolders) and of SOURCES (generated files). MLIR: see dlc_use_mlir.
function(dlc_library name)
  cmake_parse_arguments(ARG "MLIR" "EXCLUDE" "DIRS;DEPS;SOURCES" ${ARGN})
  if(NOT ARG_DIRS)
    set(ARG_DIRS .)
  endif()
  set(sources)
  foreach(dir ${ARG_DIRS})
    file(GLOB found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  list(APPEND sources ${ARG_SOURCES})
  if(NOT sources)
    message(FATAL_ERROR "dlc_library(${name}): no source")
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} Threads::Threads)
  if(ARG_MLIR)
    dlc_use_mlir(${name})
  endif()
endfunction()

# dlc_tool(name [MLIR] [SOURCES s...] [DEPS lib...]): an executable in build/bin; sources default to the folder's .cpp.
function(dlc_tool name)
  cmake_parse_arguments(ARG "MLIR" "" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} Threads::Threads)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  if(ARG_MLIR)
    dlc_use_mlir(${name})
  endif()
endfunction()

# dlc_test(name [MLIR] [SOURCES s...] [DEPS lib...]): a GoogleTest binary (default source: name.cpp), run by ctest.
function(dlc_test name)
  if(NOT DLC_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "MLIR" "" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES ${name}.cpp)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} gtest gtest_main Threads::Threads)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  if(ARG_MLIR)
    dlc_use_mlir(${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
endfunction()

# dlc_subdirectories([first...]): adds the named subfolders, then every other one that has a CMakeLists.txt.
function(dlc_subdirectories)
  file(GLOB found CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  list(TRANSFORM found REPLACE "/CMakeLists.txt$" "")
  set(ordered ${ARGN} ${found})
  list(REMOVE_DUPLICATES ordered)
  foreach(dir ${ordered})
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt)
      add_subdirectory(${dir})
    endif()
  endforeach()
endfunction()
