// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nets from ONNX files: `net.onnx`, and what `mxtrain import` prints.
#include <map>
#include <string>

#include "app/config/config.h"
#include "mxtrain/onnx/import.h"

namespace mxtrain::config {

// The file as layers. `shapes`: of one example, by the input's name in the file or in the net; ""
// is the only input. They replace those of the file, which may leave lengths open. Throws as
// onnx::ReadModel and onnx::ImportModel, with the file's name, and kConfig for inputs that the file
// does not have.
onnx::ImportedNet ImportOnnx(const std::string& file, const OperatorRegistry& registry,
                             const std::map<std::string, TShape>& shapes = {});

// The file of net.onnx, in the shapes of net.input or net.inputs.
onnx::ImportedNet ImportOnnx(const NetConfig& net, const OperatorRegistry& registry);

// The imported net as a configuration writes it: inputs and layers, and outputs if there are
// several.
NetConfig WrittenNetOf(const onnx::ImportedNet& imported, const Place& place = {});

// `net` with the layers of its file (net.onnx) before its own, and the file's inputs unless it has
// inputs. Without a file it is returned unchanged.
NetConfig WithOnnx(const NetConfig& net, const OperatorRegistry& registry);

}  // namespace mxtrain::config
