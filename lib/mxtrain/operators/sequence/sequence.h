// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sequences of T steps in a batch of N: data [T, N, ...], or [N, T, ...] with axis 1.
//
//   SequenceMask      steps from a sequence's length on become `value`
//   SequenceLast      the last step of each sequence, [N, ...]
//   SequenceReverse   the steps of each sequence in reverse order, the rest as it is (axis 0 only)
//
// With use_sequence_length, sequence_length [N] of any numeric type gives the lengths: fractions
// are truncated, and a length out of range becomes the nearest in 0 .. T (SequenceLast: 1 .. T).
// Without it every sequence has T steps. Gradients go where the elements came from; lengths have
// none.
#include "mxtrain/operator/gather_property.h"

namespace mxtrain {

template <typename P>
void DeclareSequence(Fields<P>& f) {
  f.Add("use_sequence_length", &P::use_sequence_length)
      .Default(false)
      .Help("sequences have the lengths given by sequence_length; else all steps count");
}
template <typename P>
void DeclareSequenceAxis(Fields<P>& f) {
  f.Add("axis", &P::axis).Default(0).Range(0, 1).Help("axis of the steps: 0 or 1");
}

struct SequenceMaskParam : Parameter<SequenceMaskParam> {
  bool use_sequence_length;
  int axis;
  double value;
  static void Declare(Fields<SequenceMaskParam>& f) {
    DeclareSequence(f);
    f.Add("value", &SequenceMaskParam::value)
        .Default(0)
        .AnyNumber()
        .Help("element of steps beyond the length");
    DeclareSequenceAxis(f);
  }
};
struct SequenceLastParam : Parameter<SequenceLastParam> {
  bool use_sequence_length;
  int axis;
  static void Declare(Fields<SequenceLastParam>& f) {
    DeclareSequence(f);
    DeclareSequenceAxis(f);
  }
};
struct SequenceReverseParam : Parameter<SequenceReverseParam> {
  bool use_sequence_length;
  int axis;
  static void Declare(Fields<SequenceReverseParam>& f) {
    DeclareSequence(f);
    f.Add("axis", &SequenceReverseParam::axis).Default(0).Range(0, 0).Help("axis of the steps: 0");
  }
};

// `last`: the output has no axis of steps.
bool InferSequenceShape(const std::string& who, int axis, bool last, std::vector<TShape>* in,
                        TShape* output);

template <typename P>
class SequenceProperty : public GatherProperty<P> {
 public:
  explicit SequenceProperty(bool last = false) : last_(last) {}
  std::vector<std::string> ListArguments() const override {
    if (!this->param_.use_sequence_length) return {"data"};
    return {"data", "sequence_length"};
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSequenceShape(this->TypeString(), this->param_.axis, last_, in, &(*out)[0]);
  }

 private:
  bool last_;
};

class SequenceMaskProperty final : public SequenceProperty<SequenceMaskParam> {
 public:
  std::string TypeString() const override { return "SequenceMask"; }
  std::string Description() const override { return "overwrites steps beyond a length"; }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
};
class SequenceLastProperty final : public SequenceProperty<SequenceLastParam> {
 public:
  SequenceLastProperty() : SequenceProperty(true) {}
  std::string TypeString() const override { return "SequenceLast"; }
  std::string Description() const override { return "the last step of every sequence"; }
};
class SequenceReverseProperty final : public SequenceProperty<SequenceReverseParam> {
 public:
  std::string TypeString() const override { return "SequenceReverse"; }
  std::string Description() const override { return "the steps of every sequence reversed"; }
};

}  // namespace mxtrain
