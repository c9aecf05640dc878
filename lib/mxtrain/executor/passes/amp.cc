// CastForAmp: casts around the operators that gain from a shorter type. No operator row takes mixed types yet: the request is refused.
#include "mxtrain/base/error.h"
#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

ExecGraph CastForAmp(ExecGraph graph, const BindRequest& request) {
  if (request.amp) Throw(ErrorKind::kConfig, "mixed precision is not supported on {}; train in float32", request.ctx.ToString());
  return graph;
}

}  // namespace mxtrain::executor
