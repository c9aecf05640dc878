// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/runtime.h"

#include <map>
#include <mutex>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/device/memory_lender.h"
#include "mxtrain/engine/function_scope.h"

namespace mxtrain {

namespace {

// The threads of one worker.
int TeamOf(const RuntimeOptions& options) {
  const int threads = options.threads > 0 ? options.threads : UsableCpuCount();
  if (options.cpu_workers < 1 || options.cpu_workers > threads) {
    Throw(ErrorKind::kUsage, "{} CPU workers cannot divide {}; use {}, or more threads",
          options.cpu_workers, Counted(threads, "compute thread"),
          threads == 1 ? "1 worker" : format("1 to {} workers", threads));
  }
  return threads / options.cpu_workers;
}

}  // namespace

// Destroyed in reverse order: the engine, then resources and storage, then the backends.
struct Runtime::Impl {
  explicit Impl(RuntimeOptions given)
      : options(std::move(given)),
        cpu(NewCpuBackend(TeamOf(options))),
        gpu(options.new_gpu_backend ? options.new_gpu_backend() : NewGpuBackend()) {
    // `engine` is null at the end, after the last arrays.
    storage = Storage::Create([this](Context ctx) -> Backend& { return AllocatorOf(ctx); },
                              [this] { return engine && engine->AwaitDeletion(); },
                              [this](Context ctx) { resources->ReleaseIdle(ctx); });
    resources = std::make_unique<ResourceManager>(*storage, options.seed);
    if (auto* borrower = dynamic_cast<Borrower*>(gpu.get())) {
      borrower->BorrowFrom(std::make_shared<MemoryLender>(
          MemoryLender{[this](Context ctx, int64_t bytes, const char* who) {
                         return storage->Alloc(ctx, bytes, who).ptr;
                       },
                       [this](Context ctx, void* data, int64_t bytes) {
                         storage->Free({data, bytes, ctx});
                       }}));
    }
    engine::EngineOptions engine_options;
    engine_options.type = options.engine;
    engine_options.cpu_workers = options.cpu_workers;
    engine_options.gpu_count = [this] { return gpu->DeviceCount(); };
    engine_options.on_worker_start = [this](Context ctx, engine::FnProperty property) {
      LoggerOf("engine").Debug("a worker starts: {} on {}", engine::NameOf(property),
                               ctx.ToString());
      // The teams of the compute workers divide the cores; another would compete for them.
      if (property == engine::FnProperty::kNormal && ctx.type != DeviceType::kGPU) {
        BackendOf(ctx).EnterThread();
      } else {
        SetTeamSize(1);
      }
    };
    engine_options.new_stream = [this](Context ctx, engine::FnProperty property) {
      // Copies and collectives have priority.
      return BackendOf(ctx).NewStream(ctx, property == engine::FnProperty::kNormal ? 0 : 1);
    };
    engine = engine::Create(std::move(engine_options));
    cpu->EnterThread();
  }

  Logger LoggerOf(std::string_view module) const {
    return options.log ? options.log->For(module) : Logger();
  }
  Backend& BackendOf(Context ctx) { return ctx.type == DeviceType::kGPU ? *gpu : *cpu; }
  // Pinned memory comes from the GPU backend, or is plain host memory without a GPU.
  Backend& AllocatorOf(Context ctx) {
    return ctx.type == DeviceType::kCPUPinned && gpu->DeviceCount() > 0 ? *gpu : BackendOf(ctx);
  }

  // Errors that no wait has thrown are logged, so none is lost.
  void DrainEngine() {
    for (int i = 0; i < 100; ++i) {
      try {
        return engine->WaitForAll();
      } catch (...) {
        LoggerOf("engine").Warning("an error that no wait has reported: {}",
                                   WhatOf(std::current_exception()));
      }
    }
  }

  const RuntimeOptions options;
  const std::unique_ptr<Backend> cpu;
  const std::unique_ptr<Backend> gpu;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<ResourceManager> resources;
  std::unique_ptr<engine::Engine> engine;
  std::recursive_mutex extensions_mutex;  // an extension may request another while being created
  std::map<std::string, std::shared_ptr<void>> extensions;
};

Runtime::Runtime(RuntimeOptions options, std::shared_ptr<const OperatorRegistry> operators)
    : operators_(std::move(operators)), impl_(std::make_unique<Impl>(std::move(options))) {}

Runtime::~Runtime() {
  impl_->DrainEngine();
  impl_->extensions.clear();  // may free arrays, through the engine
  impl_->DrainEngine();
  const Storage::Stats stats = storage().GetStats(Context::cpu());
  log("storage").Debug("cpu: peak {}, {} allocations, {} returned for a full cache",
                       FormatBytes(stats.peak), stats.allocations, stats.evictions);
}

engine::Engine& Runtime::engine() {
  return *impl_->engine;
}
Storage& Runtime::storage() {
  return *impl_->storage;
}
ResourceManager& Runtime::resources() {
  return *impl_->resources;
}
Backend& Runtime::backend(Context ctx) {
  return impl_->BackendOf(ctx);
}
void Runtime::ProfileResources() {
  for (const Context ctx : resources().devices()) {
    const ResourceStats stats = resources().GetStats(ctx);
    const auto add = [&](const char* what, auto value) {
      engine().ProfileCounter(format("{} {}", ctx.ToString(), what), static_cast<int64_t>(value));
    };
    add("temporary space, bytes", stats.bytes);
    add("temporary space, peak bytes", stats.peak);
    add("temporary space, times taken", stats.taken);
    add("temporary space, times grown", stats.growths);
    add("runs of operators that request random numbers", stats.random_runs);
  }
}
Logger Runtime::log(std::string_view module) const {
  return impl_->LoggerOf(module);
}
const RuntimeOptions& Runtime::options() const {
  return impl_->options;
}
void Runtime::DestroyAfter(engine::VarHandle var, std::shared_ptr<void> state) {
  if (!engine::FunctionScope::Inside(&engine())) return engine().Drain(var);
  // Even if the function is skipped, the engine destroys it, with what it owns, at its turn.
  engine().PushSync([state = std::move(state)](RunContext) {}, {}, {&var, 1}, {.name = "destroy"});
}

std::shared_ptr<void> Runtime::Extension(const std::string& key,
                                         const std::function<std::shared_ptr<void>()>& make) {
  const std::lock_guard lock(impl_->extensions_mutex);
  if (const auto found = impl_->extensions.find(key); found != impl_->extensions.end())
    return found->second;
  return impl_->extensions[key] = make();
}

}  // namespace mxtrain
