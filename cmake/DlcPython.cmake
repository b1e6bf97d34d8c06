# dlc_python_module(): how the extension module dlc/_C is built, placed and installed.
# The interpreter is the checkout's .venv if there is one, or the one that scikit-build-core hands over.
if(NOT Python_EXECUTABLE AND EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
endif()
find_package(Python 3.11 COMPONENTS Interpreter Development.Module)

# dlc_python_module([SOURCES s...] [DEPS lib...]): target dlc_python, the module _C, which exports its init function and
# nothing else. It is placed in python/dlc for the build in build/, in <build>/python/dlc for any other build.
function(dlc_python_module)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  Python_add_library(dlc_python MODULE WITH_SOABI ${ARG_SOURCES})
  target_link_libraries(dlc_python PRIVATE ${ARG_DEPS} Threads::Threads)
  target_include_directories(dlc_python PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_compile_definitions(dlc_python PRIVATE DLC_VERSION="${PROJECT_VERSION}")
  set(exports ${CMAKE_BINARY_DIR}/python-exports.map)
  file(WRITE ${exports} "{ global: PyInit__C; local: *; };\n")
  target_link_options(dlc_python PRIVATE -Wl,--version-script=${exports} -Wl,--exclude-libs,ALL)
  set(place ${CMAKE_BINARY_DIR}/python/dlc)
  if(CMAKE_BINARY_DIR STREQUAL ${CMAKE_SOURCE_DIR}/build)
    set(place ${CMAKE_SOURCE_DIR}/python/dlc)
  endif()
  set_target_properties(dlc_python PROPERTIES OUTPUT_NAME _C LIBRARY_OUTPUT_DIRECTORY ${place})
  install(TARGETS dlc_python LIBRARY DESTINATION dlc)
endfunction()
