// SPDX-License-Identifier: Apache-2.0
#pragma once
// Owns the shared state of a training process: backends, storage, engine, resources, log; holds the
// operator registry. There is no global instance: `main` creates it and passes it down, every
// test creates its own. Arrays know their Runtime. It must outlive all arrays; its destructor waits
// for the engine. All accessors are thread-safe.
#include <functional>
#include <memory>
#include <string>

#include "mxtrain/base/log.h"
#include "mxtrain/engine/engine.h"
#include "mxtrain/resource/resource_manager.h"
#include "mxtrain/storage/storage.h"

namespace mxtrain {

class OperatorRegistry;  // operator/registry.h, above this module: opaque here

struct RuntimeOptions {
  std::string engine = "threaded";  // or "naive"
  int threads = 0;                  // for CPU computation; 0: all that the process may use
  // Workers that divide the threads: operators that do not depend on each other run side by side,
  // each on a team of threads / cpu_workers. The bits of results depend on the size of a team, not
  // on the number of workers. kUsage unless each has a thread. The naive engine has one such team,
  // and so has a GPU's worker for operators that run on the host: for nets on GPUs leave it at 1.
  int cpu_workers = 1;
  uint64_t seed = 0;         // at the start; resources().Seed changes it
  std::shared_ptr<Log> log;  // empty: messages are discarded
  std::function<std::unique_ptr<Backend>()> new_gpu_backend;  // empty: NewGpuBackend
  // An operator without a kernel on a GPU is an error; else the CPU computes it, with copies.
  bool strict_device = false;
};

class MXTRAIN_API Runtime {
 public:
  Runtime(RuntimeOptions options, std::shared_ptr<const OperatorRegistry> operators);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  engine::Engine& engine();
  Storage& storage();
  ResourceManager& resources();
  // The backend that computes on the context's memory; for pinned memory, the CPU. See CheckDevice
  // for whether it is usable.
  Backend& backend(Context ctx);
  const OperatorRegistry& operators() const { return *operators_; }
  std::shared_ptr<const OperatorRegistry> operators_ptr() const { return operators_; }
  // Adds what resources() counts to the running trace of the engine, for each device that was used.
  void ProfileResources();
  Logger log(std::string_view module) const;  // a name of LogModules
  const RuntimeOptions& options() const;

  // For destructors: destroys `state`, which pushed functions use, after everything pushed on the
  // variable. Waits for that; but inside a function of the engine, where it would wait for itself,
  // it returns, and the engine destroys the state later. Errors stay where they are.
  void DestroyAfter(engine::VarHandle var, std::shared_ptr<void> state);
  // Per-Runtime state of a higher module (the imperative plan cache): created once by `make` on
  // first use. Destroyed after the engine has stopped, before storage.
  std::shared_ptr<void> Extension(const std::string& key,
                                  const std::function<std::shared_ptr<void>()>& make);

 private:
  std::shared_ptr<const OperatorRegistry> operators_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mxtrain
