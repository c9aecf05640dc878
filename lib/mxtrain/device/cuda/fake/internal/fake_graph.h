// SPDX-License-Identifier: Apache-2.0
#pragma once
// What graphs of FakeCudnn are made of, and their arithmetic.
#include <array>
#include <map>
#include <vector>

#include "mxtrain/device/cuda/fake/internal/fake_cudnn.h"

namespace mxtrain::cuda::test {

using Object = FakeCudnn::Object;
using Kind = cudnnBackendDescriptorType_t;
using Name = cudnnBackendAttributeName_t;

// A value of an attribute: numbers, or references to other descriptors.
struct Value {
  cudnnBackendAttributeType_t type{};
  std::vector<int64_t> numbers;
  std::vector<double> reals;
  std::vector<void*> pointers;
  std::vector<Object*> objects;
};

struct FakeCudnn::Object {
  Kind kind;
  bool finalized = false;
  std::map<Name, Value> values;
  const FakeEngine* engine = nullptr;  // of a configuration, an engine, a plan
  Object* graph = nullptr;             // of the same
  size_t knob = 0;                     // of a knob choice

  int64_t Number(Name name, size_t i = 0) const { return values.at(name).numbers.at(i); }
  const std::vector<int64_t>& Numbers(Name name) const { return values.at(name).numbers; }
  Object* Reference(Name name) const {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.objects.at(0);
  }
};

// The three operations of a convolution, as their forward part.
struct Convolution {
  Object *window, *data, *weight, *out;
  double alpha, beta;
  std::array<cudnnBackendAttributeType_t, 2> factor_types;
  int written;  // of data, weight, out

  explicit Convolution(const Object& op);
  Object* result() const { return written == 0 ? data : written == 1 ? weight : out; }
};

cudnnPointwiseMode_t PointwiseModeOf(const Object& op);
bool IsVirtual(const Object& tensor);
int64_t IdOf(const Object& tensor);
const std::vector<int64_t>& ShapeOf(const Object& tensor);
int64_t BytesOf(const Object& tensor);
// The arrays of an operation, in the order of its attributes; for a pointwise one only those that
// it has.
struct OperationArrays {
  std::vector<Object*> in, out;
  std::vector<Object*> All() const;
};
OperationArrays ArraysOf(const Object& op);
// The arrays of operations that are in memory, by id.
std::map<int64_t, const Object*> RealArraysOf(const std::vector<Object*>& ops);

// Computes in double; what an operation writes is rounded to its type. `places` by id.
void RunOperations(const std::vector<Object*>& ops, const std::map<int64_t, void*>& places);

}  // namespace mxtrain::cuda::test
