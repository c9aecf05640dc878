#pragma once
// One forward (and backward) pass of one implementation over guarded memory: the machine under operator_case.h. It plans, lays the arrays
// as the plan says, runs, and reports what memory says about the run; whether the numbers are right is its caller's affair.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/operator/registry.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {

// What stays the same over the trials of one case and type. All values are plain and already rounded to their types.
struct PassSetup {
  const OperatorProperty* property = nullptr;
  const KernelEntry* kernel = nullptr;
  Context ctx = Context::cpu();  // where it runs
  Backend* backend = nullptr;    // of that device
  bool is_train = true;
  std::vector<TensorSpec> in, out, aux;
  Arrays in_values, aux_values, head_values;
  Arrays old_out, old_grad;  // found in outputs and gradients before the run, where the request is kAddTo or kNullOp
};

struct PassTrial {
  std::string what;
  bool backward = false;
  std::vector<OpReqType> out_req, grad_req;  // kWriteTo, kAddTo, kNullOp; an in-place pair turns its kWriteTo into kWriteInplace
  std::optional<InplacePair> forward_pair, backward_pair;
  std::vector<std::optional<Layout>> offer;
  bool required = false;  // a kernel that may not refuse the case may not refuse this either
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

  // Asks the kernel. False: it refuses, see refusal().
  bool Plan();
  const std::string& refusal() const { return refusal_; }
  const mxtrain::Plan& plan() const { return *plan_; }

  // Fills every array, runs and examines. May be called again.
  PassOutcome Run();
  // After Run: the bare kernels once more, for timing.
  void Forward();
  bool CanRunBackward() const { return can_run_backward_; }
  void Backward();

 private:
  struct Array;
  class Watch;
  void CheckPlan(std::vector<std::string>* problems) const;
  void MakeArrays();
  void Fill();
  // On a device with memory of its own: every array goes there before a run, and comes back behind it.
  void Upload();
  void Download();
  template <typename F>
  void ForArrays(F f);
  RunContext run_context() const { return {setup_.ctx, stream_.get()}; }
  void MakeBlobs();
  Array NewArray(const TensorSpec& spec, const Layout& layout) const;
  void Write(const Array& array, const Values& values) const;
  Values Read(const Array& array) const;
  void CheckPadding(const Array& array, const std::string& what, std::vector<std::string>* problems) const;
  void CheckGuards(const std::string& when, std::vector<std::string>* problems) const;
  BackwardReads Reads() const;

  const PassSetup& setup_;
  const PassTrial& trial_;
  std::string refusal_;
  std::optional<mxtrain::Plan> plan_;
  std::unique_ptr<Operator> op_;
  std::unique_ptr<Stream> stream_;
  RandomState random_;
  bool can_run_backward_ = false;
  bool made_ = false;

  std::vector<Array> in_, out_, aux_, head_, grad_, backward_in_, saved_, forward_space_, backward_space_;
  std::vector<Array> forward_workspace_, backward_workspace_;  // one each
  std::vector<TBlob> in_blobs_, out_blobs_, aux_blobs_, head_blobs_, grad_blobs_, backward_in_blobs_, backward_out_blobs_, saved_blobs_;
  std::vector<Resource> forward_resources_, backward_resources_;
  std::vector<OpReqType> out_req_, grad_req_;
  OpContext forward_ctx_, backward_ctx_;
};

}  // namespace mxtrain::test
