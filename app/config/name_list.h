// SPDX-License-Identifier: Apache-2.0
#pragma once
// A list of names for train.weights.map: rules from the names in a file of weights to those of a
// net, and what is known of the families of such files: who published them, by the names of their
// arrays, and how they want images prepared.
//
//   [[PATTERN, REPLACEMENT], [PATTERN, null], [PATTERN, REPLACEMENT, transpose], ...]
//
// the rules alone (null drops the array), or
//
//   families:
//     timm: {has: '^conv_stem\.', interpolation: bicubic, mean: [...], std: [...],
//            vars: {bn_eps: 0.001}, nets: {efficientnet_lite0: {mean: [...]}}}
//   rules: [...]
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/train/weights.h"

namespace mxtrain::config {

// Files of one publisher, which have names of arrays and the preparation of images in common.
struct WeightsFamily {
  std::string name;            // torchvision, timm, ...
  std::optional<NameMap> has;  // a name that this drops is one of the family's; none: any file
  std::string interpolation = "bilinear";  // of the antialiased resize
  std::vector<double> mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225};  // of 0 .. 1
  std::vector<std::pair<std::string, std::string>> vars;  // of the net: what the weights rely on

  // Whether one of these names of arrays is the family's.
  bool Owns(const std::vector<std::string>& arrays) const;
  // Whether the two differ in more than interpolation, so that a wrong guess costs accuracy.
  bool DiffersFrom(const WeightsFamily& other) const;
};

struct NameList {
  NameMap rules;
  std::vector<WeightsFamily> families;  // at least one
};

// `net`: its name, for what a family says of it alone. Throws DiagnosticError for a list that is
// not one, kConfig for an invalid regular expression.
NameList ReadNameList(const std::string& path, const std::string& net = "");

}  // namespace mxtrain::config
