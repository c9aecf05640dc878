// SPDX-License-Identifier: Apache-2.0
#pragma once
// One forward (and backward) pass of one kernel over guarded memory: the machinery of
// operator_case.h. It plans, creates the arrays in the layouts of the plan, runs, and checks
// memory; the caller checks the numbers.
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/operator/registry.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/host_space.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {

// Shared by the trials of one case and type. All values are plain and already rounded to their
// types.
struct PassSetup {
  const OperatorProperty* property = nullptr;
  const KernelEntry* kernel = nullptr;
  Context ctx = Context::cpu();  // where it runs
  Backend* backend = nullptr;    // of that device
  bool is_train = true;
  Math math = Math::kFast;
  std::vector<TensorSpec> in, out, aux;
  Arrays in_values, aux_values, head_values;
  // Contents of outputs and gradients before the run, for kAddTo and kNullOp.
  Arrays old_out, old_grad;
};

struct PassTrial {
  std::string what;
  bool backward = false;
  // kWriteTo, kAddTo, kNullOp; an in-place pair changes its kWriteTo to kWriteInplace.
  std::vector<OpReqType> out_req, grad_req;
  std::optional<InplacePair> forward_pair, backward_pair;
  std::vector<std::optional<Layout>> offer;
  bool required = false;  // a kernel that must not refuse the case must not refuse this either
};

struct PassOutcome {
  Arrays out, aux_after_forward, aux_after_backward, in_grad;
  bool backward_ran = false;
  int64_t allocations = 0;
  std::vector<std::string> problems;
};

class Pass {
 public:
  Pass(const PassSetup& setup, const PassTrial& trial);
  ~Pass();

  // Plans. Returns false if the kernel refuses, see refusal().
  bool Plan();
  const std::string& refusal() const { return refusal_; }
  const mxtrain::Plan& plan() const { return *plan_; }

  // Fills every array, runs and checks. May be called again.
  PassOutcome Run();
  // After Run: runs only the kernels again, for timing.
  void Forward();
  bool CanRunBackward() const { return can_run_backward_; }
  void Backward();

 private:
  struct Array;
  class Watch;
  void CheckPlan(std::vector<std::string>* problems) const;
  void MakeArrays();
  void Fill();
  // On a device with separate memory: copies every array there before a run, and back after it.
  void Upload();
  void Download();
  template <typename F>
  void ForArrays(F f);
  RunContext run_context() const { return {setup_.ctx, stream_.get()}; }
  void MakeBlobs();
  Array NewArray(const TensorSpec& spec, const Layout& layout) const;
  void Write(const Array& array, const Values& values) const;
  Values Read(const Array& array) const;
  void CheckPadding(const Array& array, const std::string& what,
                    std::vector<std::string>* problems) const;
  void CheckGuards(const std::string& when, std::vector<std::string>* problems) const;
  BackwardReads Reads() const;
  // The array that InplacePair::from of a backward pair means.
  const Array& ReadByBackward(int from) const;

  const PassSetup& setup_;
  const PassTrial& trial_;
  std::string refusal_;
  std::optional<mxtrain::Plan> plan_;
  std::unique_ptr<Operator> op_;
  std::unique_ptr<Stream> stream_;
  RandomState random_;
  bool can_run_backward_ = false;
  bool made_ = false;

  std::vector<Array> in_, out_, aux_, head_, grad_, backward_in_, saved_, forward_space_,
      backward_space_;
  std::vector<Array> forward_workspace_, backward_workspace_;  // one each
  std::vector<Array> device_random_;                           // one: random_, for a GPU
  std::vector<TBlob> in_blobs_, out_blobs_, aux_blobs_, head_blobs_, grad_blobs_,
      backward_in_blobs_, backward_out_blobs_, saved_blobs_;
  std::vector<Resource> forward_resources_, backward_resources_;
  std::deque<HostSpace> grown_;  // of resources of unknown size
  std::vector<OpReqType> out_req_, grad_req_;
  OpContext forward_ctx_, backward_ctx_;
};

}  // namespace mxtrain::test
