# SPDX-License-Identifier: Apache-2.0
# mxtrain_add_plugin(target folder...)
#
# Builds operator folders (laid out as those of lib/mxtrain/operators) into a shared object that `mxtrain --plugin` and
# OperatorRegistry::LoadPlugin open. The list of registrations and the two entry points are generated. Works in the tree and, after
# find_package(mxtrain), outside of it. Files named *_test.cc are left to the caller.
include(${CMAKE_CURRENT_LIST_DIR}/MxtrainOperators.cmake)

# Writes FILE, the two functions that the loader looks for, around RegisterPluginOperators.
function(mxtrain_write_plugin_entry target file)
  set(version ${mxtrain_VERSION})
  file(CONFIGURE OUTPUT ${file} CONTENT
"// Generated: what the loader of plug-ins looks for.
#include \"mxtrain/operator/registry.h\"
namespace mxtrain {
void RegisterPluginOperators(OperatorRegistry& registry);
}
extern \"C\" MXTRAIN_API const mxtrain::PluginInfo* mxtrain_plugin_info() {
  static const mxtrain::PluginInfo info = {mxtrain::kPluginAbi, \"${target}\", \"${version}\"};
  return &info;
}
extern \"C\" MXTRAIN_API void mxtrain_plugin_register(mxtrain::OperatorRegistry& registry) {
  mxtrain::RegisterPluginOperators(registry);
}
" @ONLY)
endfunction()

function(mxtrain_add_plugin target)
  set(folders)
  foreach(folder IN LISTS ARGN)
    get_filename_component(absolute ${folder} ABSOLUTE)
    if(NOT IS_DIRECTORY ${absolute})
      message(FATAL_ERROR "mxtrain_add_plugin(${target}): ${absolute} is not a folder")
    endif()
    list(APPEND folders ${absolute})
  endforeach()
  mxtrain_collect_operators(FOLDERS ${folders} SOURCES sources
    REGISTRATIONS ${CMAKE_CURRENT_BINARY_DIR}/${target}_registrations.cc FUNCTION RegisterPluginOperators)
  mxtrain_write_plugin_entry(${target} ${CMAKE_CURRENT_BINARY_DIR}/${target}_entry.cc)
  add_library(${target} MODULE ${sources} ${CMAKE_CURRENT_BINARY_DIR}/${target}_registrations.cc
    ${CMAKE_CURRENT_BINARY_DIR}/${target}_entry.cc)
  set_target_properties(${target} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE $<$<CONFIG:>:-O2>)  # without CMAKE_BUILD_TYPE kernels would not be optimized
  target_link_libraries(${target} PRIVATE mxtrain::mxtrain)
endfunction()
