// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/property.h"

#include <algorithm>
#include <numeric>

#include "mxtrain/operator/internal/best_plan.h"

namespace mxtrain {
namespace {

// The shapes and types of a request, for errors: "(float32 [8, 4], float32 [3, 4])".
std::string Describe(std::span<const TensorSpec> specs) {
  std::vector<std::string> texts;
  for (const TensorSpec& spec : specs)
    texts.push_back(format("{} {}", NameOf(spec.type), spec.shape.ToString()));
  return format("({})", join(texts, ", "));
}

}  // namespace

void ThrowNoKernel(const std::string& op, const PlanRequest& request,
                   const std::vector<std::string>& refusals) {
  if (refusals.empty()) {
    Throw(ErrorKind::kConfig, "{} has no kernel for {} in this build; run it on another device", op,
          request.ctx.ToString());
  }
  Throw(ErrorKind::kConfig, "{}: no kernel on {} takes inputs {}{}: {}", op, request.ctx.ToString(),
        Describe(request.in), request.needs_backward ? " with gradients" : "",
        join(refusals, "; "));
}

bool OperatorProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                 std::vector<DType>* aux) const {
  DType common = DType::kUnknown;
  for (const std::vector<DType>* types : {in, out, aux}) {
    for (DType type : *types) {
      if (type == DType::kUnknown) continue;
      if (common != DType::kUnknown && type != common) {
        Throw(ErrorKind::kConfig, "{} takes arrays of one type, but got {} and {}; insert a Cast",
              TypeString(), NameOf(common), NameOf(type));
      }
      common = type;
    }
  }
  for (std::vector<DType>* types : {in, out, aux}) std::fill(types->begin(), types->end(), common);
  return common != DType::kUnknown || in->size() + out->size() + aux->size() == 0;
}

std::vector<int> OperatorProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  std::vector<int> all = out_grad;
  all.insert(all.end(), in_data.begin(), in_data.end());
  all.insert(all.end(), out_data.begin(), out_data.end());
  return all;
}

bool OperatorProperty::NeedsHeadGradient() const {
  const int num_in = static_cast<int>(ListArguments().size());
  std::vector<int> out_grad(static_cast<size_t>(NumVisibleOutputs())),
      in_data(static_cast<size_t>(num_in)), out_data(static_cast<size_t>(NumOutputs()));
  std::iota(out_grad.begin(), out_grad.end(), 0);
  std::iota(in_data.begin(), in_data.end(), NumVisibleOutputs());
  std::iota(out_data.begin(), out_data.end(), NumVisibleOutputs() + num_in);
  const std::vector<int> read = DeclareBackwardDependency(out_grad, in_data, out_data);
  return std::any_of(read.begin(), read.end(), [this](int id) { return id < NumVisibleOutputs(); });
}

double OperatorProperty::ForwardFlops(const std::vector<TShape>&,
                                      const std::vector<TShape>& out) const {
  double elements = 0;
  for (const TShape& shape : out) elements += static_cast<double>(shape.Size());
  return elements;
}

Expected<Plan, std::vector<std::string>> BestPlan(
    const OperatorProperty& property, const OperatorRegistry& registry, const PlanRequest& request,
    Backend& backend, const std::function<std::string(const Plan&)>& why_not) {
  std::vector<std::string> refusals;
  for (const KernelEntry* entry : registry.Kernels(property.TypeString(), request.ctx.type)) {
    Expected<Plan, Refusal> plan = entry->plan(property, request, backend);
    if (!plan) {
      refusals.push_back(format("{}: {}", entry->name, plan.error().reason));
      continue;
    }
    plan->kernel = entry->name.c_str();
    const std::string reason = request.deterministic && !plan->deterministic ? "not deterministic"
                               : why_not                                     ? why_not(*plan)
                                                                             : "";
    if (reason.empty()) return std::move(*plan);
    refusals.push_back(format("{}: {}", entry->name, reason));
  }
  return refusals;
}

Plan OperatorProperty::CreatePlan(const OperatorRegistry& registry, const PlanRequest& request,
                                  Backend& backend) const {
  Expected<Plan, std::vector<std::string>> plan = BestPlan(*this, registry, request, backend);
  if (!plan) ThrowNoKernel(TypeString(), request, plan.error());
  return std::move(*plan);
}

void UnifyShape(const TShape& from, TShape* into, const std::string& who, const std::string& what) {
  const TShape expected = *into;
  if (MergeShape(from, into)) return;
  Throw(ErrorKind::kConfig, "{}: {} has shape {}, but {} was expected", who, what, from.ToString(),
        expected.ToString());
}

void UnifyType(DType expected, DType* type, const std::string& who, const std::string& what) {
  if (*type != DType::kUnknown && *type != expected) {
    Throw(ErrorKind::kConfig, "{}: {} is {}, but {} was expected", who, what, NameOf(*type),
          NameOf(expected));
  }
  *type = expected;
}

bool InferSameShape(const OperatorProperty& property, std::vector<TShape>* in,
                    std::vector<TShape>* out) {
  TShape common;
  const auto join_all = [&](const std::vector<TShape>& shapes,
                            const std::vector<std::string>& names) {
    for (size_t i = 0; i < shapes.size(); ++i)
      UnifyShape(shapes[i], &common, property.TypeString(), names[i]);
  };
  join_all(*in, property.ListArguments());
  join_all(*out, property.ListOutputs());
  std::fill(in->begin(), in->end(), common);
  std::fill(out->begin(), out->end(), common);
  return common.known();
}

}  // namespace mxtrain
