// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/fake/internal/fake_cudnn.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>

#include "mxtrain/base/format.h"
#include "mxtrain/device/cuda/fake/internal/fake_graph.h"

namespace mxtrain::cuda::test {

using Type = cudnnBackendAttributeType_t;

namespace {

FakeCudnn* fake = nullptr;
std::map<Object*, std::unique_ptr<Object>> living;

// A failure that the caller is to blame for.
cudnnStatus_t Blame(cudnnStatus_t status, const std::string& what) {
  fake->problems.push_back(what);
  return status;
}

// True if this call is to fail.
bool Injected() {
  return fake->calls++ == fake->fail_at;
}

Object* Find(cudnnBackendDescriptor_t descriptor) {
  auto* object = static_cast<Object*>(descriptor);
  return living.contains(object) ? object : nullptr;
}

// What an attribute demands.
struct Rule {
  Name name;
  Type type;
  int64_t most = 1;  // elements
  bool required = true;
  std::set<Kind> kinds = {};  // of the descriptors that it may refer to
  std::optional<Type> or_type = {};
};

constexpr Kind kTensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
constexpr Type kRef = CUDNN_TYPE_BACKEND_DESCRIPTOR;

std::vector<Rule> ConvolutionRules(int first, int convolution, int x, int w, int y) {
  const auto name = [&](int offset) { return static_cast<Name>(first + offset); };
  const auto factor = [&](int offset) {
    return Rule{name(offset), CUDNN_TYPE_FLOAT, 1, true, {}, CUDNN_TYPE_DOUBLE};
  };
  return {factor(0),
          factor(1),
          {name(convolution), kRef, 1, true, {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR}},
          {name(x), kRef, 1, true, {kTensor}},
          {name(w), kRef, 1, true, {kTensor}},
          {name(y), kRef, 1, true, {kTensor}}};
}

std::vector<Rule> NormalisationGradientRules() {
  std::vector<Rule> rules{{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE}};
  for (int name = CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC;
       name <= CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS; ++name)
    rules.push_back({static_cast<Name>(name), kRef, 1, true, {kTensor}});
  return rules;
}

const std::vector<Rule>* RulesOf(Kind kind) {
  static const std::map<Kind, std::vector<Rule>> rules = {
      {kTensor,
       {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, CUDNN_DIM_MAX},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, CUDNN_DIM_MAX},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, false}}},
      {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
       {{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, CUDNN_DIM_MAX},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, CUDNN_DIM_MAX},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, CUDNN_DIM_MAX},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, CUDNN_DIM_MAX}}},
      {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, false}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       ConvolutionRules(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 2, 4, 3, 5)},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       ConvolutionRules(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 2, 4, 3, 5)},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       ConvolutionRules(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 2, 4, 3, 5)},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
         kRef,
         1,
         true,
         {CUDNN_BACKEND_POINTWISE_DESCRIPTOR}},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kRef, 1, true, {kTensor}},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kRef, 1, false, {kTensor}},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kRef, 1, false, {kTensor}},
        {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, kRef, 1, false, {kTensor}},
        {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, kRef, 1, false, {kTensor}}}},
      {CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE},
        {CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_OPERATION_GENSTATS_XDESC, kRef, 1, true, {kTensor}},
        {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, kRef, 1, true, {kTensor}},
        {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, kRef, 1, true, {kTensor}}}},
      {CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR, NormalisationGradientRules()},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE},
        {CUDNN_ATTR_OPERATIONGRAPH_OPS,
         kRef,
         64,
         true,
         {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
          CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
          CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
          CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR}}}},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
       {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
         kRef,
         1,
         true,
         {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR}},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE}}},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
       {{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
         kRef,
         1,
         true,
         {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR}}}},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
       {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 64},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 64},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR}}},
      // Filled in by cuDNN only.
      {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {}},
      {CUDNN_BACKEND_ENGINE_DESCRIPTOR, {}},
      {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, {}}};
  const auto found = rules.find(kind);
  return found == rules.end() ? nullptr : &found->second;
}

const Rule* RuleOf(Kind kind, Name name) {
  for (const Rule& rule : *RulesOf(kind)) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

template <typename T, typename To>
void Read(const void* from, int64_t count, std::vector<To>* to) {
  const T* values = static_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) to->push_back(static_cast<To>(values[i]));
}

cudnnStatus_t Create(Kind kind, cudnnBackendDescriptor_t* descriptor) {
  if (Injected()) return FakeCudnn::kInjected;
  if (!RulesOf(kind))
    return Blame(CUDNN_STATUS_NOT_SUPPORTED, format("a descriptor of kind {}", int(kind)));
  auto made = std::make_unique<Object>();
  made->kind = kind;
  *descriptor = made.get();
  living[made.get()] = std::move(made);
  ++fake->created;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Destroy(cudnnBackendDescriptor_t descriptor) {
  if (!Find(descriptor)) return Blame(CUDNN_STATUS_BAD_PARAM, "destroys what is no descriptor");
  living.erase(static_cast<Object*>(descriptor));
  ++fake->destroyed;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetAttribute(cudnnBackendDescriptor_t descriptor, Name name, Type type, int64_t count,
                           const void* from) {
  if (Injected()) return FakeCudnn::kInjected;
  Object* object = Find(descriptor);
  if (!object || !from)
    return Blame(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, format("attribute {} of nothing", int(name)));
  const std::string who = format("attribute {} of kind {}", int(name), int(object->kind));
  if (object->finalized) return Blame(CUDNN_STATUS_NOT_INITIALIZED, who + ", which is finalized");
  const Rule* rule = RuleOf(object->kind, name);
  if (!rule) return Blame(CUDNN_STATUS_NOT_SUPPORTED, who + " does not exist");
  if (rule->type != type && rule->or_type != type)
    return Blame(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, who + ": its type");
  if (count < 1 || count > rule->most) return Blame(CUDNN_STATUS_BAD_PARAM, who + ": its count");
  Value value;
  value.type = type;
  switch (type) {
    case CUDNN_TYPE_INT64:
      Read<int64_t>(from, count, &value.numbers);
      break;
    case CUDNN_TYPE_BOOLEAN:
      Read<bool>(from, count, &value.numbers);
      break;
    case CUDNN_TYPE_FLOAT:
      Read<float>(from, count, &value.reals);
      break;
    case CUDNN_TYPE_DOUBLE:
      Read<double>(from, count, &value.reals);
      break;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
      Read<void*>(from, count, &value.pointers);
      break;
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      for (int64_t i = 0; i < count; ++i) {
        Object* to = Find(static_cast<void* const*>(from)[i]);
        if (!to || !rule->kinds.contains(to->kind))
          return Blame(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, who + ": what it refers to");
        if (!to->finalized)
          return Blame(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, who + ": not finalized");
        value.objects.push_back(to);
      }
      break;
    default:
      Read<int>(from, count, &value.numbers);  // an enumeration
  }
  object->values[name] = std::move(value);
  return CUDNN_STATUS_SUCCESS;
}

// "" or what is wrong with the attributes and shapes of an operation.
std::string ProblemOfPointwise(const Object& op) {
  static const std::set<Name> binary = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                        CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                        CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
  static const std::map<cudnnPointwiseMode_t, std::set<Name>> expected = {
      {CUDNN_POINTWISE_ADD, binary},
      {CUDNN_POINTWISE_SUB, binary},
      {CUDNN_POINTWISE_MUL, binary},
      {CUDNN_POINTWISE_RELU_FWD,
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC}},
      {CUDNN_POINTWISE_RELU_BWD,
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC,
        CUDNN_ATTR_OPERATION_POINTWISE_DXDESC}}};
  std::set<Name> given;
  for (const auto& [name, value] : op.values) {
    if (name != CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR) given.insert(name);
  }
  const auto found = expected.find(PointwiseModeOf(op));
  if (found == expected.end() || found->second != given) return "its operands";
  const auto [in, out] = ArraysOf(op);
  for (Object* array : in) {
    for (size_t i = 0; i < 4; ++i) {
      if (ShapeOf(*array)[i] != ShapeOf(*out[0])[i] && ShapeOf(*array)[i] != 1) return "a shape";
    }
  }
  return "";
}

// The arrays that have only channels: as many as `images`.
std::string ProblemOfChannels(const Object& images, const std::vector<Object*>& arrays) {
  const std::vector<int64_t> expected{1, ShapeOf(images)[1], 1, 1};
  for (const Object* array : arrays) {
    if (ShapeOf(*array) != expected) return "the shape of an array of channels";
  }
  return "";
}

std::string ProblemOfSums(const Object& op) {
  if (op.Number(CUDNN_ATTR_OPERATION_GENSTATS_MODE) != CUDNN_GENSTATS_SUM_SQSUM) return "its mode";
  const auto [in, out] = ArraysOf(op);
  return ProblemOfChannels(*in[0], out);
}

std::string ProblemOfNormalisationGradient(const Object& op) {
  auto [in, out] = ArraysOf(op);
  if (ShapeOf(*in[0]) != ShapeOf(*in[1])) return "the shape of the gradient";
  out.insert(out.end(), in.begin() + 2, in.end());
  return ProblemOfChannels(*in[0], out);
}

std::string ProblemOfConvolution(const Object& op) {
  const Convolution c(op);
  const auto &x = ShapeOf(*c.data), &w = ShapeOf(*c.weight), &y = ShapeOf(*c.out);
  if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0)
    return "channels";
  // cuDNN itself accepts others, and reads them as if they were of this type.
  const Type factors = c.window->Number(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_DOUBLE
                           ? CUDNN_TYPE_DOUBLE
                           : CUDNN_TYPE_FLOAT;
  if (c.factor_types != std::array{factors, factors}) return "the type of its factors";
  for (size_t i = 0; i < 2; ++i) {
    const auto number = [&](Name name) { return c.window->Number(name, i); };
    const int64_t padded = x[2 + i] + number(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) +
                           number(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
                  window = number(CUDNN_ATTR_CONVOLUTION_DILATIONS) * (w[2 + i] - 1) + 1;
    if ((padded - window) / number(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES) + 1 != y[2 + i])
      return "the size of the output";
  }
  return "";
}

// "" or what is wrong with the operations of a graph together.
std::string ProblemOfGraph(const Object& graph) {
  std::map<int64_t, Object*> arrays;
  std::set<Object*> written, read;
  for (Object* op : graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).objects) {
    const OperationArrays of_op = ArraysOf(*op);
    for (Object* array : of_op.in) {
      if (IsVirtual(*array) && !written.contains(array)) return "a virtual array without contents";
      read.insert(array);
    }
    for (Object* array : of_op.out) {
      if (!written.insert(array).second) return "an array written twice";
    }
    for (Object* array : of_op.All()) {
      const auto [at, is_new] = arrays.emplace(IdOf(*array), array);
      if (!is_new && at->second != array) return "two arrays of one id";
    }
  }
  for (Object* array : written) {
    if (IsVirtual(*array) && !read.contains(array)) return "a virtual result";
  }
  return "";
}

// "" or what is wrong with a descriptor whose attributes are all there.
std::string ProblemOf(const Object& o) {
  switch (o.kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return ShapeOf(o).size() == o.Numbers(CUDNN_ATTR_TENSOR_STRIDES).size() ? "" : "its strides";
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: {
      const auto axes = static_cast<size_t>(o.Number(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
      for (const Name name :
           {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
            CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS}) {
        if (o.Numbers(name).size() != axes) return "the number of its axes";
      }
      return "";
    }
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return ProblemOfConvolution(o);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return ProblemOfPointwise(o);
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
      return ProblemOfSums(o);
    case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR:
      return ProblemOfNormalisationGradient(o);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return ProblemOfGraph(o);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return o.Numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() ==
                     o.values.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).pointers.size()
                 ? ""
                 : "its pointers";
    default:
      return "";
  }
}

cudnnStatus_t Finalize(cudnnBackendDescriptor_t descriptor) {
  if (Injected()) return FakeCudnn::kInjected;
  Object* o = Find(descriptor);
  if (!o) return Blame(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "finalizes nothing");
  const std::string who = format("kind {}", int(o->kind));
  if (o->finalized) return Blame(CUDNN_STATUS_BAD_PARAM, who + " is finalized twice");
  for (const Rule& rule : *RulesOf(o->kind)) {
    if (rule.required && !o->values.contains(rule.name))
      return Blame(CUDNN_STATUS_BAD_PARAM, format("{} lacks attribute {}", who, int(rule.name)));
    if (rule.type == CUDNN_TYPE_HANDLE &&
        o->values[rule.name].pointers != std::vector<void*>{fake->handle()})
      return Blame(CUDNN_STATUS_BAD_PARAM, who + ": its handle");
  }
  if (const std::string problem = ProblemOf(*o); !problem.empty())
    return Blame(CUDNN_STATUS_BAD_PARAM, format("{}: {}", who, problem));
  if (o->kind == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
    const auto mode = static_cast<cudnnBackendHeurMode_t>(o->Number(CUDNN_ATTR_ENGINEHEUR_MODE));
    if (!fake->engines.contains(mode)) return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (o->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const Object* config = o->Reference(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    o->engine = config->engine;
    o->graph = config->graph;
    if (o->engine->finalized != CUDNN_STATUS_SUCCESS) return o->engine->finalized;
  }
  o->finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

// Fills descriptors of a kind that the caller has made, and counts those that there are.
template <typename Fill>
cudnnStatus_t FillIn(Kind kind, int64_t available, int64_t requested, int64_t* count, void* into,
                     const Fill& fill) {
  *count = std::min(available, requested);
  for (int64_t i = 0; i < *count; ++i) {
    Object* to = Find(static_cast<void**>(into)[i]);
    if (!to || to->kind != kind || to->finalized)
      return Blame(CUDNN_STATUS_BAD_PARAM, format("no place for kind {}", int(kind)));
    fill(to, static_cast<size_t>(i));
    to->finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

template <typename T>
cudnnStatus_t Give(T value, int64_t requested, int64_t* count, void* into) {
  *count = 1;
  if (requested > 0) *static_cast<T*>(into) = value;
  return CUDNN_STATUS_SUCCESS;
}

template <typename T>
cudnnStatus_t GiveAll(const std::vector<T>& values, int64_t requested, int64_t* count, void* into) {
  *count = std::min(static_cast<int64_t>(values.size()), requested);
  std::copy_n(values.begin(), *count, static_cast<T*>(into));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GetAttribute(cudnnBackendDescriptor_t descriptor, Name name, Type type,
                           int64_t requested, int64_t* count, void* into) {
  if (Injected()) return FakeCudnn::kInjected;
  static const std::map<Name, std::pair<Kind, Type>> readable = {
      {CUDNN_ATTR_ENGINEHEUR_RESULTS, {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, kRef}},
      {CUDNN_ATTR_ENGINECFG_ENGINE, {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kRef}},
      {CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kRef}},
      {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_TYPE_INT64}},
      {CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
       {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_TYPE_NUMERICAL_NOTE}},
      {CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
       {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_TYPE_BEHAVIOR_NOTE}},
      {CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
       {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_TYPE_KNOB_TYPE}},
      {CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_TYPE_INT64}},
      {CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
       {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_TYPE_INT64}}};
  Object* o = Find(descriptor);
  const auto rule = readable.find(name);
  const std::string who = format("reading attribute {}", int(name));
  if (!o || rule == readable.end() || o->kind != rule->second.first)
    return Blame(CUDNN_STATUS_BAD_PARAM, who + ": of what has none");
  if (type != rule->second.second)
    return Blame(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, who + ": its type");
  if (!o->finalized) return Blame(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, who + ": not finalized");
  if (!count || (requested > 0 && !into))
    return Blame(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, who + ": into nothing");
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      Object* graph = o->Reference(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      const auto& engines = fake->engines.at(
          static_cast<cudnnBackendHeurMode_t>(o->Number(CUDNN_ATTR_ENGINEHEUR_MODE)));
      if (requested == 0) {  // more than there will be
        *count = static_cast<int64_t>(engines.size()) + 3;
        return CUDNN_STATUS_SUCCESS;
      }
      return FillIn(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, static_cast<int64_t>(engines.size()),
                    requested, count, into, [&](Object* config, size_t i) {
                      config->engine = &engines[i];
                      config->graph = graph;
                    });
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      return FillIn(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1, requested, count, into,
                    [&](Object* engine, size_t) { engine->engine = o->engine; });
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      return FillIn(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                    static_cast<int64_t>(o->engine->knobs.size()), requested, count, into,
                    [&](Object* knob, size_t i) {
                      knob->engine = o->engine;
                      knob->knob = i;
                    });
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return Give(o->engine->index, requested, count, into);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return GiveAll(o->engine->notes, requested, count, into);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return GiveAll(o->engine->behavior, requested, count, into);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return Give(o->engine->knobs[o->knob].first, requested, count, into);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      return Give(o->engine->knobs[o->knob].second, requested, count, into);
    default:
      return Give(o->engine->workspace, requested, count, into);
  }
}

// Every descriptor that `o` was made from is alive.
bool Whole(const Object* o) {
  if (!living.contains(const_cast<Object*>(o))) return false;
  if (o->graph && !Whole(o->graph)) return false;
  for (const auto& [name, value] : o->values) {
    for (const Object* other : value.objects) {
      if (!Whole(other)) return false;
    }
  }
  return true;
}

cudnnStatus_t Execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_descriptor,
                      cudnnBackendDescriptor_t pack_descriptor) {
  if (Injected()) return FakeCudnn::kInjected;
  Object *plan = Find(plan_descriptor), *pack = Find(pack_descriptor);
  if (handle != fake->handle()) return Blame(CUDNN_STATUS_BAD_PARAM, "runs on another handle");
  if (!plan || plan->kind != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || !plan->finalized || !pack ||
      pack->kind != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || !pack->finalized)
    return Blame(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "runs what is not finalized");
  if (!Whole(plan)) return Blame(CUDNN_STATUS_BAD_PARAM, "what a plan was made from is destroyed");
  std::map<int64_t, void*> places;
  const auto& ids = pack->Numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  for (size_t i = 0; i < ids.size(); ++i)
    places[ids[i]] = pack->values.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).pointers[i];
  void* workspace = pack->values.at(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).pointers[0];
  const int64_t workspace_size = plan->engine->workspace;
  if (workspace_size > 0 && !workspace)
    return Blame(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no workspace");
  std::map<uintptr_t, uintptr_t> taken;  // from, to
  const auto take = [&](const void* place, int64_t bytes) {
    const auto from = reinterpret_cast<uintptr_t>(place);
    const auto [here, is_new] = taken.emplace(from, from + static_cast<uintptr_t>(bytes));
    const auto after = std::next(here);
    return is_new && (here == taken.begin() || std::prev(here)->second <= from) &&
           (after == taken.end() || here->second <= after->first);
  };
  if (workspace_size > 0) take(workspace, workspace_size);
  const auto& ops = plan->graph->values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).objects;
  const std::map<int64_t, const Object*> arrays = RealArraysOf(ops);
  for (const auto& [id, tensor] : arrays) {
    const auto alignment = static_cast<uintptr_t>(tensor->Number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
    const auto found = places.find(id);
    if (found == places.end() || !found->second ||
        reinterpret_cast<uintptr_t>(found->second) % alignment != 0)
      return Blame(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "a pointer of an array");
    if (!take(found->second, BytesOf(*tensor)))
      return Blame(CUDNN_STATUS_BAD_PARAM, "arrays overlap");
  }
  if (arrays.size() != places.size())
    return Blame(CUDNN_STATUS_BAD_PARAM, "pointers of arrays that are not in the graph");
  if (plan->engine->executed != CUDNN_STATUS_SUCCESS) return plan->engine->executed;
  if (workspace) std::memset(workspace, 0xa5, static_cast<size_t>(workspace_size));
  RunOperations(ops, places);
  fake->executed.push_back(plan->engine->index);
  return CUDNN_STATUS_SUCCESS;
}

const char* ErrorString(cudnnStatus_t status) {
  return status == FakeCudnn::kInjected ? "injected" : "refused";
}

}  // namespace

FakeCudnn::FakeCudnn()
    : functions_{Create, Destroy, SetAttribute, GetAttribute, Finalize, Execute, ErrorString} {
  fake = this;
}

FakeCudnn::~FakeCudnn() {
  living.clear();
  fake = nullptr;
}

}  // namespace mxtrain::cuda::test
