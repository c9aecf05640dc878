# SPDX-License-Identifier: Apache-2.0
# mxtrain_module(NAME LIBRARY lib [FOLDERS sub...] [DEPENDS module...] [LINKS target...])
#
# A module is a folder of lib/mxtrain. Its sources are all *.cc of the folder and of the named sub-folders that are not tests; they become
# part of LIBRARY. DEPENDS are the only modules whose headers it may include: the list is written to modules.txt in the build folder, where
# the layer test (tests/sources/layers_test.cc) reads it. LINKS are third-party libraries that only it uses.
# Its headers, but for those in internal/, are public: LIBRARY installs them (file set HEADERS), and the target
# all_verify_interface_header_sets compiles each by itself.
# A header-only module has no object library. Its *_test.cc files become the test executable test_<name>, which may use LINKS too.
define_property(GLOBAL PROPERTY MXTRAIN_MODULES BRIEF_DOCS "modules, in order of declaration")

function(mxtrain_module name)
  cmake_parse_arguments(ARG "" "LIBRARY" "FOLDERS;DEPENDS;LINKS;DEFINITIONS" ${ARGN})
  set(root ${PROJECT_SOURCE_DIR}/lib/mxtrain/${name})
  set(sources)
  set(tests)
  foreach(folder IN ITEMS "" LISTS ARG_FOLDERS)
    file(GLOB found CONFIGURE_DEPENDS ${root}/${folder}/*.cc)
    list(APPEND sources ${found})
    file(GLOB found CONFIGURE_DEPENDS ${root}/${folder}/*.h)
    target_sources(${ARG_LIBRARY} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib FILES ${found})
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(sources)
    add_library(mxtrain_${name} OBJECT ${sources})
    target_include_directories(mxtrain_${name} PUBLIC ${PROJECT_SOURCE_DIR}/lib)
    target_link_libraries(mxtrain_${name} PUBLIC ${ARG_LINKS} PRIVATE mxtrain_flags)
    target_compile_definitions(mxtrain_${name} PRIVATE ${ARG_DEFINITIONS})
    mxtrain_share_headers(mxtrain_${name})
    target_link_libraries(${ARG_LIBRARY} PRIVATE mxtrain_${name} ${ARG_LINKS})
  endif()
  set_property(GLOBAL APPEND PROPERTY MXTRAIN_MODULES ${name})
  set_property(GLOBAL PROPERTY MXTRAIN_MODULE_${name}_DEPENDS "${ARG_DEPENDS}")
  set_property(GLOBAL PROPERTY MXTRAIN_MODULE_${name}_TESTS "${tests}")
  set_property(GLOBAL PROPERTY MXTRAIN_MODULE_${name}_LINKS "${ARG_LINKS}")
endfunction()

# Writes one line per module: "module: dependency dependency...".
function(mxtrain_write_modules file)
  get_property(modules GLOBAL PROPERTY MXTRAIN_MODULES)
  set(text "")
  foreach(module IN LISTS modules)
    get_property(depends GLOBAL PROPERTY MXTRAIN_MODULE_${module}_DEPENDS)
    list(JOIN depends " " depends)
    string(APPEND text "${module}: ${depends}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
endfunction()

# mxtrain_test(name SOURCES file... [SUPPORT target] [LINKS target...]): a doctest executable and its entry in ctest. SUPPORT brings doctest's main
# and the library under test; by default all of mxtrain. The target `doctests` builds them all.
function(mxtrain_test name)
  cmake_parse_arguments(ARG "" "SUPPORT" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT ARG_SUPPORT)
    set(ARG_SUPPORT mxtrain_test_support)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_SUPPORT} ${ARG_LINKS} mxtrain_flags mxtrain_test_flags)
  add_test(NAME ${name} COMMAND ${name})
  mxtrain_share_headers(${name})
  add_dependencies(doctests ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 1800 LABELS "${ARG_LABELS}")
endfunction()
