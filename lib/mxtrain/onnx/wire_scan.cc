// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/wire_scan.h"

#include <map>
#include <vector>

#include "mxtrain/base/error.h"

namespace mxtrain::onnx {
namespace {

// A model may need this, and so many times its own bytes: one of a hundred thousand nodes with five
// attributes each does.
constexpr int64_t kBytes = int64_t{512} << 20, kTimes = 16;
// Messages within messages; protobuf reads no more.
constexpr int kMostDepth = 100;

// What an element takes here and in protobuf beside its bytes: objects, pointers to them in arrays
// that grow, and what the heap adds.
constexpr int64_t kOfText = 144, kOfNumber = 64, kOfUnknown = 128;

// The messages of onnx.proto, with those of their fields that are messages or packed numbers.
enum Message {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kValue,
  kType,
  kTensorType,  // and sparse ones
  kShape,
  kSequence,  // and optional values
  kMap,
  kFunction,
  kTraining,
  kSparseTensor,
  kAnnotation,
  kLeaf,    // without messages: a dimension, a pair of texts, a version
  kPacked,  // numbers
  kInts,    // packed numbers that are copied as they are, in eight bytes
};
struct Field {
  uint32_t number;
  Message message;
};
struct MessageInfo {
  int64_t bytes;
  std::vector<Field> fields;
};

const MessageInfo& InfoOf(Message message) {
  static const std::map<Message, MessageInfo> infos = {
      {kModel, {400, {{7, kGraph}, {8, kLeaf}, {14, kLeaf}, {20, kTraining}, {25, kFunction}}}},
      {kGraph,
       {448,
        {{1, kNode},
         {5, kTensor},
         {11, kValue},
         {12, kValue},
         {13, kValue},
         {14, kAnnotation},
         {15, kSparseTensor},
         {16, kLeaf}}}},
      {kNode, {576, {{5, kAttribute}, {9, kLeaf}}}},
      {kAttribute,
       {704,
        {{5, kTensor},
         {6, kGraph},
         {7, kPacked},
         {8, kInts},
         {10, kTensor},
         {11, kGraph},
         {14, kType},
         {15, kType},
         {22, kSparseTensor},
         {23, kSparseTensor}}}},
      {kTensor,
       {704,
        {{1, kInts},
         {3, kLeaf},
         {4, kPacked},
         {5, kPacked},
         {7, kPacked},
         {10, kPacked},
         {11, kPacked},
         {13, kLeaf},
         {16, kLeaf}}}},
      {kValue, {448, {{2, kType}, {4, kLeaf}}}},
      {kType,
       {128, {{1, kTensorType}, {4, kSequence}, {5, kMap}, {8, kTensorType}, {9, kSequence}}}},
      {kTensorType, {128, {{2, kShape}}}},
      {kShape, {128, {{1, kLeaf}}}},
      {kSequence, {128, {{1, kType}}}},
      {kMap, {128, {{2, kType}}}},
      {kFunction, {448, {{7, kNode}, {9, kLeaf}, {11, kAttribute}, {12, kValue}, {14, kLeaf}}}},
      {kTraining, {256, {{1, kGraph}, {2, kGraph}, {3, kLeaf}, {4, kLeaf}}}},
      {kSparseTensor, {256, {{1, kTensor}, {2, kTensor}}}},
      {kAnnotation, {192, {{2, kLeaf}}}},
      {kLeaf, {192, {}}},
  };
  return infos.at(message);
}

class Scanner {
 public:
  // Adds what a message of these bytes takes.
  void Scan(std::string_view bytes, Message message, int depth) {
    total_ += InfoOf(message).bytes;
    if (depth > kMostDepth) return;
    while (!bytes.empty()) {
      uint32_t tag = 0;
      uint64_t value = 0;
      if (!Tag(&bytes, &tag)) return;
      switch (tag & 7) {
        case 0:
          if (!Varint(&bytes, &value)) return;
          total_ += kOfNumber;
          break;
        case 1:
        case 5: {
          const size_t size = (tag & 7) == 1 ? 8 : 4;
          if (bytes.size() < size) return;
          bytes.remove_prefix(size);
          total_ += kOfNumber;
          break;
        }
        case 2:
          if (!Varint(&bytes, &value) || value > bytes.size()) return;
          Nested(bytes.substr(0, value), InfoOf(message), tag >> 3, depth);
          bytes.remove_prefix(value);
          break;
        default:  // a group, which no message of ONNX has
          total_ += kOfUnknown;
      }
    }
  }

  int64_t total() const { return total_; }

 private:
  void Nested(std::string_view bytes, const MessageInfo& info, uint32_t number, int depth) {
    for (const Field& field : info.fields) {
      if (field.number != number) continue;
      if (field.message != kPacked && field.message != kInts)
        return Scan(bytes, field.message, depth + 1);
      // A number of one byte becomes one of eight, in an array that grows; then its copy.
      total_ += (field.message == kInts ? 24 : 16) * static_cast<int64_t>(bytes.size());
      return;
    }
    total_ += kOfText + static_cast<int64_t>(bytes.size());
  }

  // As protobuf reads it: of at most five bytes, whose low 32 bits are the tag.
  static bool Tag(std::string_view* bytes, uint32_t* tag) {
    constexpr size_t kMostBytes = 5;
    const size_t before = bytes->size();
    uint64_t value = 0;
    if (!Varint(bytes, &value) || before - bytes->size() > kMostBytes) return false;
    *tag = static_cast<uint32_t>(value);
    return true;
  }

  static bool Varint(std::string_view* bytes, uint64_t* value) {
    *value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes->front());
      bytes->remove_prefix(1);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  int64_t total_ = 0;
};

}  // namespace

int64_t EstimateParsedBytes(std::string_view model) {
  Scanner scanner;
  scanner.Scan(model, kModel, 0);
  return scanner.total();
}

void CheckParsedBytes(std::string_view model, const std::string& name) {
  const int64_t needed = EstimateParsedBytes(model);
  const int64_t allowed = kBytes + kTimes * static_cast<int64_t>(model.size());
  if (needed <= allowed) return;
  Throw(ErrorKind::kData,
        "{} is not a model that can be read: its {} bytes hold so many small parts that they would "
        "take {} MiB of memory; {} are allowed",
        name, model.size(), needed >> 20, allowed >> 20);
}

}  // namespace mxtrain::onnx
