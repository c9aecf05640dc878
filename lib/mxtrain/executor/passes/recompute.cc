// Recompute: trades time for memory by a budget. Only an unlimited budget is supported.
#include "mxtrain/base/error.h"
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

ExecGraph Recompute(ExecGraph graph, const BindRequest& request) {
  if (request.memory_budget != 0) {
    Throw(ErrorKind::kConfig, "a memory budget ({}) needs recomputation, which is not supported; lower the batch size instead",
          FormatBytes(request.memory_budget));
  }
  return graph;
}

}  // namespace mxtrain::executor
