// SPDX-License-Identifier: Apache-2.0
// Sequences of arrays, as far as it is known how many there are: they are taken apart here.
#include <algorithm>
#include <iterator>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

using Elements = std::vector<ImportValue>;

void OutSequence(ImportNode& node, Elements elements) {
  ImportValue value;
  value.shape = {TShape::OfRank(0), TShape::OfRank(0)};
  value.elements = std::move(elements);
  node.state().values[node.output()] = std::move(value);
}

// The position that an input says; `count`: the one when it is missing.
int64_t Position(const ImportNode& node, int input, int64_t count, int64_t most) {
  int64_t at = count;
  if (node.has(input)) {
    const std::vector<int64_t> given = node.ints(input);
    if (given.size() != 1)
      Throw(ErrorKind::kData, "{}: its position is not one number", node.Describe());
    at = given[0] < 0 ? given[0] + count : given[0];
  }
  if (at < 0 || at > most)
    Throw(ErrorKind::kData, "{}: position {} of {} arrays", node.Describe(), at, count);
  return at;
}

void SplitToSequence(ImportNode& node) {
  const int axis = node.Axis(node.Int("axis", 0), node.ndim());
  const std::string data = node.ref(0);
  const int64_t length = FixedLength(node, data, axis);
  std::vector<int64_t> sizes(static_cast<size_t>(length), 1);
  const bool one_each = !node.has(1);
  if (node.has(1) && node.array(1).dims.empty()) {
    const std::vector<int64_t> given = node.ints(1);
    const int64_t each = given.empty() ? 0 : given[0];
    if (each < 1) Throw(ErrorKind::kData, "{}: parts of {} elements", node.Describe(), each);
    sizes.clear();
    for (int64_t at = 0; at < length; at += each) sizes.push_back(std::min(each, length - at));
  } else if (node.has(1)) {
    sizes = node.ints(1);
  }
  Elements elements;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    if (size < 1 || size > length - begin)
      Throw(ErrorKind::kData, "{}: its parts do not add up to {}", node.Describe(), length);
    std::string part = Sliced(node, data, axis, begin, begin + size);
    if (one_each && node.Int("keepdims", 1) == 0)
      part = node.Add("squeeze", {part}, {{"axis", TupleOf({axis})}});
    ImportValue element;
    element.reference = part;
    element.shape = node.ShapesOf(part);
    element.type = node.in(0).type;
    elements.push_back(std::move(element));
    begin += size;
  }
  if (begin != length)
    Throw(ErrorKind::kData, "{}: its parts do not add up to {}", node.Describe(), length);
  OutSequence(node, std::move(elements));
}

void SequenceConstruct(ImportNode& node) {
  Elements elements;
  for (int i = 0; i < node.num_inputs(); ++i) elements.push_back(node.in(i));
  OutSequence(node, std::move(elements));
}

void SequenceInsert(ImportNode& node) {
  Elements elements = node.in(0).elements;
  const auto count = static_cast<int64_t>(elements.size());
  elements.insert(elements.begin() + Position(node, 2, count, count), node.in(1));
  OutSequence(node, std::move(elements));
}

void SequenceErase(ImportNode& node) {
  Elements elements = node.in(0).elements;
  const auto count = static_cast<int64_t>(elements.size());
  const int64_t last = count - 1;
  elements.erase(elements.begin() + (node.has(1) ? Position(node, 1, count, last) : last));
  OutSequence(node, std::move(elements));
}

void SequenceAt(ImportNode& node) {
  const Elements& elements = node.in(0).elements;
  const auto count = static_cast<int64_t>(elements.size());
  const int64_t at = Position(node, 1, count, count - 1);
  ImportValue element = elements[static_cast<size_t>(at)];
  element.layer = -1;  // the sequence may be read again
  node.state().values[node.output()] = std::move(element);
}

void ConcatFromSequence(ImportNode& node) {
  const Elements& elements = node.in(0).elements;
  if (elements.empty()) node.Refuse("its sequence is empty");
  std::vector<std::string> values;
  for (const ImportValue& element : elements) {
    if (element.is_constant()) node.Refuse("its sequence holds arrays that are not computed");
    values.push_back(element.reference);
  }
  const int ndim = elements[0].shape[0].ndim();
  const bool fresh = node.Int("new_axis", 0) != 0;
  const int axis = node.Axis(node.Int("axis", 0), ndim + (fresh ? 1 : 0));
  node.Out(
      fresh ? "stack" : "Concat", values,
      {{"num_args", format("{}", values.size())}, {fresh ? "axis" : "dim", params::Print(axis)}});
}

}  // namespace

std::vector<ImportEntry> SequenceImports() {
  return {
      {"SplitToSequence", SplitToSequence},
      {"SequenceConstruct", SequenceConstruct},
      {"SequenceEmpty", [](ImportNode& node) { OutSequence(node, {}); }},
      {"SequenceInsert", SequenceInsert},
      {"SequenceErase", SequenceErase},
      {"SequenceAt", SequenceAt},
      {"ConcatFromSequence", ConcatFromSequence},
  };
}

}  // namespace mxtrain::onnx
