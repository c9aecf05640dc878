// SPDX-License-Identifier: Apache-2.0
#include "tests/support/operator_pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mxtrain/base/format.h"
#include "tests/support/allocation_count.h"

namespace mxtrain::test {

struct Pass::Array {
  TensorSpec spec;
  std::shared_ptr<GuardedBuffer> buffer;

  TBlob Blob(Context ctx, bool given = true) const {
    void* data = ctx.type == DeviceType::kCPU ? buffer->data() : buffer->device_data();
    return {given ? data : nullptr, spec.shape, spec.type, spec.layout, ctx};
  }
};

// Arrays that a pass must not change.
class Pass::Watch {
 public:
  void Add(std::string what, const Array& array) {
    const auto bytes = array.buffer->contents();
    kept_.push_back({std::move(what), array.buffer, {bytes.begin(), bytes.end()}});
  }
  void Check(std::vector<std::string>* problems) const {
    for (const Kept& k : kept_) {
      if (!std::equal(k.before.begin(), k.before.end(), k.buffer->contents().begin()))
        problems->push_back(k.what + " was changed");
    }
  }

 private:
  struct Kept {
    std::string what;
    std::shared_ptr<GuardedBuffer> buffer;
    std::vector<uint8_t> before;
  };
  std::vector<Kept> kept_;
};

namespace {

bool Contains(const std::vector<InplacePair>& pairs, InplacePair pair) {
  return std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
}

std::vector<OpReqType> WithPair(std::vector<OpReqType> req,
                                const std::optional<InplacePair>& pair) {
  if (pair) req[pair->to] = OpReqType::kWriteInplace;
  return req;
}

TensorSpec RawBytes(int64_t bytes) {
  return {TShape{bytes}, DType::kUint8, Layout()};
}

}  // namespace

Pass::Pass(const PassSetup& setup, const PassTrial& trial)
    : setup_(setup), trial_(trial), random_{setup.in.size() + 11, 3} {}
Pass::~Pass() = default;

bool Pass::Plan() {
  const std::vector<std::optional<Layout>> aux_layout(setup_.aux.size());
  PlanRequest request;
  request.ctx = setup_.ctx;
  request.is_train = setup_.is_train;
  request.math = setup_.math;
  request.needs_backward = trial_.backward;
  request.threads = setup_.backend->threads();
  request.in = setup_.in;
  request.out = setup_.out;
  request.aux = setup_.aux;
  request.in_layout = trial_.offer;
  request.aux_layout = aux_layout;
  request.out_req = trial_.out_req;
  if (trial_.backward) request.grad_req = trial_.grad_req;
  auto answer = setup_.kernel->plan(*setup_.property, request, *setup_.backend);
  if (!answer) {
    refusal_ = answer.error().reason;
    return false;
  }
  plan_ = std::move(*answer);
  return true;
}

void Pass::CheckPlan(std::vector<std::string>* problems) const {
  const auto expect = [&](bool holds, const char* what) {
    if (!holds) problems->push_back(what);
  };
  expect(plan_->cost >= 0, "the plan's cost is negative");
  expect(plan_->make != nullptr, "the plan cannot make its operator");
  expect(trial_.backward || plan_->saved.empty(), "the plan saves bytes without a backward pass");
  for (const InplacePair& pair : plan_->forward_inplace) {
    expect(Contains(setup_.property->ForwardInplaceOption(), pair),
           "the plan grants an undeclared in-place pair of forward");
    if (Contains(setup_.property->ForwardInplaceOption(), pair)) {
      expect(in_[pair.from].spec.Bytes() == out_[pair.to].spec.Bytes(),
             "an in-place pair of forward differs in bytes");
    }
  }
  for (const InplacePair& pair : plan_->backward_inplace) {
    expect(Contains(setup_.property->BackwardInplaceOption(), pair),
           "the plan grants an undeclared in-place pair of backward");
    if (trial_.backward && Contains(setup_.property->BackwardInplaceOption(), pair)) {
      expect(ReadByBackward(pair.from).spec.Bytes() == grad_[pair.to].spec.Bytes(),
             "an in-place pair of backward differs in bytes");
    }
  }
}

const Pass::Array& Pass::ReadByBackward(int from) const {
  auto i = static_cast<size_t>(from);
  for (const std::vector<Array>* arrays : {&head_, &backward_in_}) {
    if (i < arrays->size()) return (*arrays)[i];
    i -= arrays->size();
  }
  return out_[i];
}

BackwardReads Pass::Reads() const {
  if (plan_->backward_reads) return *plan_->backward_reads;
  const size_t heads = setup_.out.size(), inputs = setup_.in.size();
  std::vector<int> head_ids(static_cast<size_t>(setup_.property->NumVisibleOutputs())),
      in_ids(inputs), out_ids(heads);
  for (size_t i = 0; i < head_ids.size(); ++i) head_ids[i] = static_cast<int>(i);
  for (size_t i = 0; i < inputs; ++i) in_ids[i] = static_cast<int>(heads + i);
  for (size_t i = 0; i < heads; ++i) out_ids[i] = static_cast<int>(heads + inputs + i);
  BackwardReads reads{std::vector<bool>(heads), std::vector<bool>(inputs),
                      std::vector<bool>(heads)};
  for (const int id : setup_.property->DeclareBackwardDependency(head_ids, in_ids, out_ids)) {
    const size_t i = static_cast<size_t>(id);
    if (i < heads) {
      reads.out_grad[i] = true;
    } else if (i < heads + inputs) {
      reads.in_data[i - heads] = true;
    } else {
      reads.out_data[i - heads - inputs] = true;
    }
  }
  return reads;
}

Pass::Array Pass::NewArray(const TensorSpec& spec, const Layout& layout) const {
  Array array{{spec.shape, spec.type, layout}, nullptr};
  array.buffer = std::make_shared<GuardedBuffer>(array.spec.Bytes());
  if (setup_.ctx.type != DeviceType::kCPU) array.buffer->PlaceOn(*setup_.backend, setup_.ctx);
  return array;
}

template <typename F>
void Pass::ForArrays(F f) {
  for (auto* arrays :
       {&in_, &out_, &aux_, &head_, &grad_, &backward_in_, &saved_, &forward_space_,
        &backward_space_, &forward_workspace_, &backward_workspace_, &device_random_}) {
    for (Array& array : *arrays) f(array);
  }
}

void Pass::Upload() {
  if (setup_.ctx.type == DeviceType::kCPU) return;
  ForArrays([&](Array& array) { array.buffer->Upload(run_context()); });
}

void Pass::Download() {
  if (setup_.ctx.type == DeviceType::kCPU) return;
  ForArrays([&](Array& array) { array.buffer->Download(run_context()); });
  const std::unique_ptr<Event> done = stream_->NewEvent();
  stream_->Record(*done);
  done->Wait();
}

void Pass::MakeArrays() {
  const auto make_all = [this](const std::vector<TensorSpec>& specs,
                               const std::vector<Layout>& layouts) {
    MXTRAIN_ASSERT(specs.size() == layouts.size());
    std::vector<Array> arrays;
    for (size_t i = 0; i < specs.size(); ++i) arrays.push_back(NewArray(specs[i], layouts[i]));
    return arrays;
  };
  in_ = make_all(setup_.in, plan_->in);
  out_ = make_all(setup_.out, plan_->out);
  aux_ = make_all(setup_.aux, plan_->aux);
  if (trial_.forward_pair)
    out_[trial_.forward_pair->to].buffer = in_[trial_.forward_pair->from].buffer;
  if (trial_.backward) {
    head_ = make_all(setup_.out, plan_->out);
    grad_ = make_all(setup_.in, plan_->in);
    for (size_t i = 0; i < plan_->grad_layout.size(); ++i) {
      const std::optional<TypedLayout>& own = plan_->grad_layout[i];
      if (own) grad_[i] = NewArray({setup_.in[i].shape, own->type, Layout()}, own->layout);
    }
    backward_in_ = in_;
    for (size_t i = 0; i < plan_->backward_in.size(); ++i) {
      if (plan_->backward_in[i] && *plan_->backward_in[i] != plan_->in[i])
        backward_in_[i] = NewArray(setup_.in[i], *plan_->backward_in[i]);
    }
    if (trial_.backward_pair) {
      grad_[trial_.backward_pair->to].buffer = ReadByBackward(trial_.backward_pair->from).buffer;
    }
    for (const int64_t bytes : plan_->saved) saved_.push_back(NewArray(RawBytes(bytes), Layout()));
  }
  device_random_ = {NewArray(RawBytes(kRandomStateBytes), Layout())};
  forward_workspace_ = {NewArray(RawBytes(plan_->forward_workspace), Layout())};
  backward_workspace_ = {NewArray(RawBytes(plan_->backward_workspace), Layout())};
}

void Pass::Write(const Array& array, const Values& values) const {
  if (array.spec.layout.plain()) return WriteValues(values, array.spec.type, array.buffer->data());
  const TensorSpec plain{array.spec.shape, array.spec.type, Layout()};
  GuardedBuffer source(plain.Bytes());
  WriteValues(values, plain.type, source.data());
  TestBackend().Reorder({Context::cpu(), nullptr}, plain, source.data(), array.spec,
                        array.buffer->data());
}

Values Pass::Read(const Array& array) const {
  const TensorSpec plain{array.spec.shape, array.spec.type, Layout()};
  if (array.spec.layout.plain())
    return ReadValues(array.buffer->data(), plain.type, plain.shape.Size());
  GuardedBuffer copy(plain.Bytes());
  TestBackend().Reorder({Context::cpu(), nullptr}, array.spec, array.buffer->data(), plain,
                        copy.data());
  return ReadValues(copy.data(), plain.type, plain.shape.Size());
}

void Pass::CheckPadding(const Array& array, const std::string& what,
                        std::vector<std::string>* problems) const {
  if (!array.spec.layout.Padded(array.spec.shape)) return;
  // Elements converted to plain and back are surrounded by zero padding: any difference was in the
  // padding.
  const TensorSpec plain{array.spec.shape, array.spec.type, Layout()};
  GuardedBuffer copy(plain.Bytes()), back(array.spec.Bytes());
  const RunContext run{Context::cpu(), nullptr};
  TestBackend().Reorder(run, array.spec, array.buffer->data(), plain, copy.data());
  TestBackend().Reorder(run, plain, copy.data(), array.spec, back.data());
  const int64_t stored = array.spec.Bytes() / SizeOf(array.spec.type);
  const Values found = ReadValues(array.buffer->data(), array.spec.type, stored),
               clean = ReadValues(back.data(), array.spec.type, stored);
  for (int64_t i = 0; i < stored; ++i) {
    if (found[i] == clean[i] || (std::isnan(found[i]) && std::isnan(clean[i]))) continue;
    problems->push_back(what + " has padding that is not zero");
    return;
  }
}

void Pass::CheckGuards(const std::string& when, std::vector<std::string>* problems) const {
  const auto check = [&](const std::vector<Array>& arrays, const char* what) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (!arrays[i].buffer->GuardsIntact())
        problems->push_back(format("{} wrote outside {} {}", when, what, i));
    }
  };
  check(in_, "input");
  check(out_, "output");
  check(aux_, "auxiliary state");
  check(head_, "head gradient");
  check(grad_, "gradient");
  check(saved_, "saved array");
  check(forward_space_, "forward scratch");
  check(backward_space_, "backward scratch");
  check(forward_workspace_, "forward workspace");
  check(backward_workspace_, "backward workspace");
}

void Pass::Fill() {
  const auto poison = [](const std::vector<Array>& arrays) {
    for (const Array& array : arrays) array.buffer->Poison();
  };
  for (const auto* arrays : {&out_, &grad_, &saved_, &forward_space_, &backward_space_,
                             &forward_workspace_, &backward_workspace_}) {
    poison(*arrays);
  }
  std::memcpy(device_random_[0].buffer->data(), &random_, sizeof random_);
  const auto write = [this](const std::vector<Array>& arrays, const Arrays& values) {
    for (size_t i = 0; i < arrays.size(); ++i) Write(arrays[i], values[i]);
  };
  for (size_t i = 0; i < out_.size(); ++i) {
    if (trial_.out_req[i] != OpReqType::kWriteTo) Write(out_[i], setup_.old_out[i]);
  }
  for (size_t i = 0; i < grad_.size(); ++i) {
    if (trial_.grad_req[i] != OpReqType::kWriteTo) Write(grad_[i], setup_.old_grad[i]);
  }
  write(in_, setup_.in_values);
  write(aux_, setup_.aux_values);
  write(head_, setup_.head_values);
  for (size_t i = 0; i < backward_in_.size(); ++i) {
    if (backward_in_[i].buffer != in_[i].buffer) Write(backward_in_[i], setup_.in_values[i]);
  }
}

void Pass::MakeBlobs() {
  const auto blobs = [this](const std::vector<Array>& arrays) {
    std::vector<TBlob> result;
    for (const Array& array : arrays) result.push_back(array.Blob(setup_.ctx));
    return result;
  };
  // What is not requested has no memory.
  const auto requested = [this](const std::vector<Array>& arrays,
                                const std::vector<OpReqType>& req) {
    std::vector<TBlob> result;
    for (size_t i = 0; i < arrays.size(); ++i)
      result.push_back(arrays[i].Blob(setup_.ctx, req[i] != OpReqType::kNullOp));
    return result;
  };
  in_blobs_ = blobs(in_);
  out_blobs_ = requested(out_, trial_.out_req);
  aux_blobs_ = blobs(aux_);
  saved_blobs_ = blobs(saved_);
  if (trial_.backward) {
    grad_blobs_ = requested(grad_, trial_.grad_req);
    const BackwardReads reads = Reads();
    // Others have no head gradient.
    const size_t visible = static_cast<size_t>(setup_.property->NumVisibleOutputs());
    for (size_t i = 0; i < head_.size(); ++i)
      head_blobs_.push_back(head_[i].Blob(setup_.ctx, i < visible && reads.out_grad[i]));
    for (size_t i = 0; i < backward_in_.size(); ++i)
      backward_in_blobs_.push_back(backward_in_[i].Blob(setup_.ctx, reads.in_data[i]));
    for (size_t i = 0; i < out_.size(); ++i)
      backward_out_blobs_.push_back(out_[i].Blob(setup_.ctx, reads.out_data[i]));
    can_run_backward_ = !(trial_.forward_pair && reads.in_data[trial_.forward_pair->from]);
    for (size_t i = 0; i < out_.size(); ++i) {
      can_run_backward_ &= trial_.out_req[i] == OpReqType::kWriteTo ||
                           (trial_.out_req[i] == OpReqType::kNullOp && !reads.out_data[i]);
    }
    if (trial_.backward_pair) {
      std::vector<bool> read = reads.out_grad;
      read.insert(read.end(), reads.in_data.begin(), reads.in_data.end());
      read.insert(read.end(), reads.out_data.begin(), reads.out_data.end());
      can_run_backward_ &= read[static_cast<size_t>(trial_.backward_pair->from)];
    }
  }
  std::vector<TShape> in_shapes;
  for (const TensorSpec& spec : setup_.in) in_shapes.push_back(spec.shape);
  const auto answer = [this](const std::vector<ResourceRequest>& requests,
                             std::vector<Array>* spaces) {
    std::vector<Resource> resources;
    for (const ResourceRequest& request : requests) {
      const bool scratch = request.type == ResourceRequest::kTempSpace,
                 unsized = scratch && request.bytes == ResourceRequest::kUnknownSize;
      MXTRAIN_ASSERT(!unsized || setup_.ctx.type == DeviceType::kCPU);
      spaces->push_back(NewArray(RawBytes(scratch && !unsized ? request.bytes : 0), Layout()));
      resources.push_back({request.type, spaces->back().Blob(setup_.ctx).data, request.bytes,
                           &random_, StreamOf("case"), "case",
                           unsized ? &grown_.emplace_back() : nullptr});
      if (!scratch && setup_.ctx.type == DeviceType::kGPU) {
        resources.back().random_on_device =
            static_cast<const RandomState*>(device_random_[0].Blob(setup_.ctx).data);
      }
    }
    return resources;
  };
  forward_resources_ = answer(setup_.property->ForwardResource(in_shapes), &forward_space_);
  backward_resources_ = answer(setup_.property->BackwardResource(in_shapes), &backward_space_);
  out_req_ = WithPair(trial_.out_req, trial_.forward_pair);
  if (trial_.backward) grad_req_ = WithPair(trial_.grad_req, trial_.backward_pair);
  const RunContext run = run_context();
  forward_ctx_ = {setup_.is_train,
                  run,
                  forward_resources_,
                  saved_blobs_,
                  forward_workspace_[0].Blob(setup_.ctx),
                  {}};
  backward_ctx_ = {setup_.is_train,
                   run,
                   backward_resources_,
                   saved_blobs_,
                   backward_workspace_[0].Blob(setup_.ctx),
                   {}};
}

void Pass::Forward() {
  op_->Forward({forward_ctx_, in_blobs_, out_req_, out_blobs_, aux_blobs_});
}

void Pass::Backward() {
  op_->Backward({backward_ctx_, head_blobs_, backward_in_blobs_, backward_out_blobs_, grad_req_,
                 grad_blobs_, aux_blobs_});
}

PassOutcome Pass::Run() {
  PassOutcome outcome;
  if (!made_) {
    stream_ = setup_.backend->NewStream(setup_.ctx, 0);
    MakeArrays();
    CheckPlan(&outcome.problems);
    MakeBlobs();
    op_ = plan_->make();
    made_ = true;
  }
  Fill();
  Watch forward_watch;
  for (size_t i = 0; i < in_.size(); ++i) {
    if (!trial_.forward_pair || trial_.forward_pair->from != static_cast<int>(i))
      forward_watch.Add(format("input {} in forward", i), in_[i]);
  }
  Upload();
  const AllocationCount forward_count;
  Forward();
  outcome.allocations = forward_count.value();
  Download();
  CheckGuards("Forward", &outcome.problems);
  forward_watch.Check(&outcome.problems);
  for (size_t i = 0; i < out_.size(); ++i) {
    outcome.out.push_back(Read(out_[i]));
    CheckPadding(out_[i], format("output {}", i), &outcome.problems);
  }
  for (const Array& array : aux_) outcome.aux_after_forward.push_back(Read(array));
  if (!can_run_backward_) return outcome;

  Watch backward_watch;
  // Not what a gradient overwrites.
  const auto watch = [&](const char* what, const std::vector<Array>& arrays) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (trial_.backward_pair && arrays[i].buffer == grad_[trial_.backward_pair->to].buffer)
        continue;
      backward_watch.Add(format("{} {} in backward", what, i), arrays[i]);
    }
  };
  watch("input", backward_in_);
  watch("output", out_);
  for (size_t i = 0; i < saved_.size(); ++i)
    backward_watch.Add(format("saved array {} in backward", i), saved_[i]);
  watch("head gradient", head_);
  Upload();
  const AllocationCount backward_count;
  Backward();
  outcome.allocations += backward_count.value();
  Download();
  outcome.backward_ran = true;
  CheckGuards("Backward", &outcome.problems);
  backward_watch.Check(&outcome.problems);
  for (size_t i = 0; i < grad_.size(); ++i) {
    outcome.in_grad.push_back(Read(grad_[i]));
    CheckPadding(grad_[i], format("gradient {}", i), &outcome.problems);
  }
  for (const Array& array : aux_) outcome.aux_after_backward.push_back(Read(array));
  return outcome;
}

}  // namespace mxtrain::test
