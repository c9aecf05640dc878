# Install rules: libraries, headers, the program, and a package configuration that exports mxtrain::mxtrain and mxtrain::engine. Component
# `engine` is the dependency engine alone (`cmake --install BUILD --component engine`); the rest is component `mxtrain`.
include(CMakePackageConfigHelpers)

set(mxtrain_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mxtrain)

# Installs the headers of the folder lib/mxtrain/<module>.
function(mxtrain_install_headers module component)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}/lib CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/mxtrain/${module}/*.h
    ${PROJECT_SOURCE_DIR}/lib/mxtrain/${module}/*.cuh)
  if(NOT MXTRAIN_HAVE_CUDA)
    list(FILTER headers EXCLUDE REGEX "/device/cuda/|\\.cuh$")
  endif()
  foreach(header IN LISTS headers)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/lib/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT ${component})
  endforeach()
endfunction()

file(RELATIVE_PATH from_program_to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(mxtrain_engine_lib mxtrain_lib PROPERTIES INSTALL_RPATH "$ORIGIN")

install(TARGETS mxtrain_engine_lib EXPORT mxtrain-engine-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT engine NAMELINK_COMPONENT engine)
install(EXPORT mxtrain-engine-targets NAMESPACE mxtrain:: DESTINATION ${mxtrain_package_dir} COMPONENT engine)
foreach(module IN ITEMS base device engine)
  mxtrain_install_headers(${module} engine)
endforeach()

install(TARGETS mxtrain_lib EXPORT mxtrain-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mxtrain NAMELINK_COMPONENT mxtrain)
install(EXPORT mxtrain-targets NAMESPACE mxtrain:: DESTINATION ${mxtrain_package_dir} COMPONENT mxtrain)
file(GLOB modules RELATIVE ${PROJECT_SOURCE_DIR}/lib/mxtrain CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/mxtrain/*)
list(REMOVE_ITEM modules base device engine)
foreach(module IN LISTS modules)
  mxtrain_install_headers(${module} mxtrain)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/scripts/cmake/MxtrainOperators.cmake ${PROJECT_SOURCE_DIR}/scripts/cmake/MxtrainPlugin.cmake
  DESTINATION ${mxtrain_package_dir} COMPONENT mxtrain)

if(MXTRAIN_HAVE_CUDA)
  set_target_properties(mxtrain_cuda_lib PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS mxtrain_cuda_lib LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mxtrain)
endif()

if(TARGET mxtrain_program)
  set_target_properties(mxtrain_program PROPERTIES INSTALL_RPATH "$ORIGIN/${from_program_to_libraries}")
  install(TARGETS mxtrain_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT mxtrain)
  # Man pages and completion, which the program wrote when it was linked (app/CMakeLists.txt).
  set(generated ${PROJECT_BINARY_DIR}/generated)
  install(DIRECTORY ${generated}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT mxtrain)
  install(DIRECTORY ${generated}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT mxtrain)
  install(DIRECTORY ${generated}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT mxtrain)
  install(DIRECTORY ${generated}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT mxtrain)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/configs)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mxtrain/configs COMPONENT mxtrain)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/scripts/cmake/mxtrain-config.cmake.in ${PROJECT_BINARY_DIR}/mxtrain-config.cmake
  INSTALL_DESTINATION ${mxtrain_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mxtrain-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mxtrain-config.cmake ${PROJECT_BINARY_DIR}/mxtrain-config-version.cmake
  DESTINATION ${mxtrain_package_dir} COMPONENT engine)
