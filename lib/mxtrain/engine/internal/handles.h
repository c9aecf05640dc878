// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the opaque handles of engine.h point to. Each engine derives its own; a handle belongs to
// the engine that created it.

namespace mxtrain::engine {

class Var {
 public:
  Var(const Var&) = delete;
  Var& operator=(const Var&) = delete;

 protected:
  Var() = default;
  ~Var() = default;
};

class Opr {
 public:
  Opr(const Opr&) = delete;
  Opr& operator=(const Opr&) = delete;

 protected:
  Opr() = default;
  ~Opr() = default;
};

class Sequence {
 public:
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

 protected:
  Sequence() = default;
  ~Sequence() = default;
};

}  // namespace mxtrain::engine
