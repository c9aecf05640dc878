// SPDX-License-Identifier: Apache-2.0
#pragma once
// The declarations of SimpleOps are kept in entries beside the registry's tables; a plug-in may
// extend an existing one. Private to this module.
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "mxtrain/operator/simple_op.h"

namespace mxtrain {

// Saves every entry of the registry; the returned function restores them.
std::function<void()> KeepSimpleOps(const OperatorRegistry& registry);

namespace simple_op {

// The functions of an entry, which may be function objects: those that another form adapts.
struct Calls {
  // A function object of the signature of a pointer.
  template <typename Pointer>
  using Of = std::function<std::remove_pointer_t<Pointer>>;

  using Shape = std::variant<std::monostate, Of<UnaryShapeFunction>, Of<BinaryShapeFunction>>;
  using Function = std::variant<std::monostate, Of<UnaryFunction>, Of<BinaryFunction>>;
  using Gradient = std::variant<std::monostate, Of<UnaryGradFunctionT0>, Of<UnaryGradFunctionT1>,
                                Of<UnaryGradFunctionT2>, Of<BinaryGradFunctionT0>,
                                Of<BinaryGradFunctionT1>, Of<BinaryGradFunctionT2>>;

  // As the member functions of SimpleOp, for the declared operator `name`.
  static void SetShape(OperatorRegistry& registry, const std::string& name, Shape shape);
  static void SetFunction(OperatorRegistry& registry, const std::string& name, DeviceType device,
                          Function function, SimpleOpInplaceOption inplace);
  static void SetGradient(OperatorRegistry& registry, const std::string& name, DeviceType device,
                          Gradient gradient, SimpleOpInplaceOption inplace);
};

}  // namespace simple_op

}  // namespace mxtrain
