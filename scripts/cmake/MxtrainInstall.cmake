# Install rules: libraries, headers, the program, and a package configuration that exports mxtrain::mxtrain and mxtrain::engine.
include(CMakePackageConfigHelpers)
