#pragma once
// Owns what a process of training shares: backends, storage, engine, random state, log; carries the operator registry. There is no global
// one: `main` makes it and passes it down, every test makes its own. Arrays know their Runtime. It must outlive all arrays; its destructor
// waits for the engine. All accessors are thread-safe.
#include <functional>
#include <memory>
#include <string>

#include "mxtrain/base/log.h"
#include "mxtrain/engine/engine.h"
#include "mxtrain/ndarray/resource.h"
#include "mxtrain/storage/storage.h"

namespace mxtrain {

class OperatorRegistry;  // operator/registry.h, above this module: carried, never looked into here

struct RuntimeOptions {
  std::string engine = "threaded";  // or "naive"
  int threads = 0;                  // CPU compute team; 0: as many as the process may use
  uint64_t seed = 0;
  Logger log;
  std::function<std::unique_ptr<Backend>()> new_gpu_backend;  // empty: NewGpuBackend
};

class MXTRAIN_API Runtime {
 public:
  Runtime(RuntimeOptions options, std::shared_ptr<const OperatorRegistry> operators);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  engine::Engine& engine();
  Storage& storage();
  // What computes on memory of the context: for pinned memory, which is the host's, the CPU. Usable or not: CheckDevice tells.
  Backend& backend(Context ctx);
  const OperatorRegistry& operators() const { return *operators_; }
  std::shared_ptr<const OperatorRegistry> operators_ptr() const { return operators_; }
  const Logger& log() const;
  const RuntimeOptions& options() const;

  // For destructors of what pushed functions use: waits for all that was pushed on the variable, and warns of an error that nobody has
  // seen.
  void Drain(engine::VarHandle var);
  // For draws by imperative calls: a fresh step each, in call order.
  uint64_t NextImperativeStep();
  // Room for what a module above keeps per Runtime (the imperative plan cache): created once by `make` on first use. Destroyed after the
  // engine has stopped, before storage.
  std::shared_ptr<void> Extension(const std::string& key, const std::function<std::shared_ptr<void>()>& make);

 private:
  std::shared_ptr<const OperatorRegistry> operators_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mxtrain
