# SPDX-License-Identifier: Apache-2.0
# Finds the protobuf schema of libonnx-dev, with its library, and libprotobuf-dev; defines OnnxProto::OnnxProto.
find_path(OnnxProto_INCLUDE_DIR NAMES onnx/onnx_pb.h)
find_library(OnnxProto_LIBRARY NAMES onnx_proto)
find_path(OnnxProto_PROTOBUF_INCLUDE_DIR NAMES google/protobuf/message.h)
find_library(OnnxProto_PROTOBUF_LIBRARY NAMES protobuf)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OnnxProto
  REQUIRED_VARS OnnxProto_INCLUDE_DIR OnnxProto_LIBRARY OnnxProto_PROTOBUF_INCLUDE_DIR OnnxProto_PROTOBUF_LIBRARY
  REASON_FAILURE_MESSAGE "install libonnx-dev and libprotobuf-dev (scripts/install_deps.sh does)")
if(OnnxProto_FOUND AND NOT TARGET OnnxProto::OnnxProto)
  add_library(OnnxProto::OnnxProto UNKNOWN IMPORTED)
  set_target_properties(OnnxProto::OnnxProto PROPERTIES IMPORTED_LOCATION "${OnnxProto_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OnnxProto_INCLUDE_DIR};${OnnxProto_PROTOBUF_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "ONNX_NAMESPACE=onnx;ONNX_ML=1"
    INTERFACE_LINK_LIBRARIES "${OnnxProto_PROTOBUF_LIBRARY}")
endif()
