# What follows from the op records in dialects/ops: dlc_opgen makes the C++ includes in the build folder.
include_guard(GLOBAL)
find_package(Python3 3.9 COMPONENTS Interpreter REQUIRED)
file(GLOB DLC_OP_RECORDS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/dialects/ops/*.td)
file(GLOB _opgen CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/opgen/*.py)
set(_opgen_main ${CMAKE_SOURCE_DIR}/tools/opgen/opgen.py)
set(_ops_json ${CMAKE_BINARY_DIR}/ops.json)
set(_dump ${DLC_LLVM_TBLGEN} -I ${DLC_LLVM_ROOT}/include -I ${CMAKE_SOURCE_DIR}/dialects/ops --dump-json
          ${CMAKE_SOURCE_DIR}/dialects/ops/Ops.td -o ${_ops_json})
# Run once now, so that the list of outputs is known; afterwards as a build step that rewrites only what changed.
if(NOT EXISTS ${CMAKE_BINARY_DIR}/opgen.stamp)
  execute_process(COMMAND ${_dump} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${_opgen_main} --json ${_ops_json} --out ${CMAKE_BINARY_DIR}
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
file(GLOB_RECURSE _includes ${CMAKE_BINARY_DIR}/runtime/op/*.inc ${CMAKE_BINARY_DIR}/runtime/rules/*.inc
     ${CMAKE_BINARY_DIR}/kernels/elementwise/*.inc ${CMAKE_BINARY_DIR}/python/binding/*.inc)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/opgen.stamp
  BYPRODUCTS ${_includes} ${CMAKE_BINARY_DIR}/python/dlc/_op_samples.py
  COMMAND ${_dump}
  COMMAND ${Python3_EXECUTABLE} ${_opgen_main} --json ${_ops_json} --out ${CMAKE_BINARY_DIR} --stamp ${CMAKE_BINARY_DIR}/opgen.stamp
  DEPENDS ${DLC_OP_RECORDS} ${_opgen}
  COMMENT "Op table")
add_custom_target(dlc_opgen DEPENDS ${CMAKE_BINARY_DIR}/opgen.stamp)
# The two committed files that follow from the records; the lint compares them.
foreach(mode IN ITEMS committed check)
  add_custom_target(opgen-${mode} COMMAND ${Python3_EXECUTABLE} ${_opgen_main} --json ${_ops_json} --root ${CMAKE_SOURCE_DIR}
                    $<$<STREQUAL:${mode},check>:--check> COMMAND_EXPAND_LISTS DEPENDS ${CMAKE_BINARY_DIR}/opgen.stamp)
endforeach()
