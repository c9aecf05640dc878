// SPDX-License-Identifier: Apache-2.0
// Copies, fills and host access: everything in NDArray that moves elements. Pushed functions hold a
// Place, not an array: memory is freed through the engine after everything pushed on its variable,
// so no function can be an array's last owner.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/engine/function_scope.h"
#include "mxtrain/ndarray/internal/chunk.h"
#include "mxtrain/ndarray/internal/with_type.h"

namespace mxtrain {
namespace {

constexpr int64_t kFillGrain = 16384;
// Elements that a GPU array gets from the host before it is filled from itself.
constexpr int64_t kFillPiece = 4096;

template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
    // The largest plus one, exact in double.
    const double high = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= low && value < high)) {
      Throw(ErrorKind::kConfig, "{} is not a value of {}", value, NameOf(DTypeOf<T>::value));
    }
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return T(static_cast<float>(value));
  }
}

template <typename T>
void FillElements(void* data, int64_t n, T value) {
  T* elements = static_cast<T*>(data);
  ParallelFor(n, kFillGrain, [=](int64_t begin, int64_t end) {
    std::fill(elements + begin, elements + end, value);
  });
}

bool OnGpu(Context ctx) {
  return ctx.type == DeviceType::kGPU;
}

// `renews` for a function that writes all elements of the array and reads none.
std::span<const engine::VarHandle> RenewedBy(const NDArray& target,
                                             std::span<const engine::VarHandle> writes) {
  return target.IsWhole() ? writes : std::span<const engine::VarHandle>();
}

// Whether one device computes on both: pinned memory belongs to the host.
bool OneDevice(Context a, Context b) {
  return OnGpu(a) || OnGpu(b) ? a == b : true;
}

}  // namespace

void NDArray::PushZeros() {
  Backend* backend = &runtime().backend(ctx());
  const engine::VarHandle writes[] = {var()};
  runtime().engine().PushSync(
      [backend, place = place(), bytes = spec_.Bytes()](RunContext ctx) {
        backend->Zero(ctx, place.Take(), bytes);
      },
      {}, writes, {.ctx = ctx(), .name = "NDArray::Zeros", .renews = RenewedBy(*this, writes)});
}

void NDArray::Fill(double value) {
  chunk();
  if (value == 0 && !std::signbit(value)) return PushZeros();
  if (layout().Padded(shape())) {
    NDArray plain(runtime(), shape(), dtype(), ctx(), {}, who());
    plain.Fill(value);
    return PushReorder(plain);
  }
  if (OnGpu(ctx())) {
    NDArray piece(runtime(), {std::min(shape().Size(), kFillPiece)}, dtype(),
                  Context::cpu_pinned(ctx().id), {}, who());
    piece.Fill(value);
    return PushRepeated(piece);
  }
  WithType(dtype(), [&](auto tag) {
    using T = decltype(tag);
    const engine::VarHandle writes[] = {var()};
    runtime().engine().PushSync(
        [place = place(), n = shape().Size(), element = FromDouble<T>(value)](RunContext) {
          FillElements<T>(place.Take(), n, element);
        },
        {}, writes, {.ctx = ctx(), .name = "NDArray::Fill", .renews = RenewedBy(*this, writes)});
  });
}

void NDArray::PushRepeated(const NDArray& piece) {
  Backend* backend = &runtime().backend(ctx());
  const engine::VarHandle reads[] = {piece.var()}, writes[] = {var()};
  runtime().engine().PushSync(
      [backend, source = piece.place(), target = place(), piece_bytes = piece.PlainBytes(),
       bytes = PlainBytes()](RunContext ctx) {
        const Context host = source.memory->ctx, gpu = target.memory->ctx;
        char* to = static_cast<char*>(target.Take());
        backend->CopyBytes(ctx, host, source.Take(), gpu, to, piece_bytes);
        for (int64_t filled = piece_bytes; filled < bytes; filled *= 2)
          backend->CopyBytes(ctx, gpu, to, gpu, to + filled, std::min(filled, bytes - filled));
      },
      reads, writes,
      {.ctx = ctx(),
       .property = engine::FnProperty::kCopyToDevice,
       .name = "NDArray::Fill",
       .renews = RenewedBy(*this, writes)});
}

void NDArray::PushReorder(const NDArray& from, int priority) {
  Backend* backend = &runtime().backend(ctx());
  std::vector<engine::VarHandle> reads = {from.var()}, writes = {var()};
  engine::DeduplicateVars(&reads, &writes);
  runtime().engine().PushSync(
      [backend, source = from.place(), target = place(), source_spec = from.spec_,
       target_spec = spec_](RunContext ctx) {
        backend->Reorder(ctx, source_spec, source.Take(), target_spec, target.Take());
      },
      reads, writes,
      {.ctx = ctx(),
       .priority = priority,
       .name = "NDArray::CopyFrom",
       .renews = reads.empty() ? std::span<const engine::VarHandle>() : RenewedBy(*this, writes)});
}

void NDArray::PushTransfer(const NDArray& from, int priority) {
  const bool leaves_gpu = OnGpu(from.ctx());
  const Context where = leaves_gpu ? from.ctx() : ctx();
  Backend* backend = &runtime().backend(where);
  const engine::VarHandle reads[] = {from.var()}, writes[] = {var()};
  runtime().engine().PushSync(
      [backend, source = from.place(), target = place(), bytes = PlainBytes()](RunContext ctx) {
        backend->CopyBytes(ctx, source.memory->ctx, source.Take(), target.memory->ctx,
                           target.Take(), bytes);
      },
      reads, writes,
      {.ctx = where,
       .property =
           leaves_gpu ? engine::FnProperty::kCopyFromDevice : engine::FnProperty::kCopyToDevice,
       .priority = priority,
       .name = "NDArray::CopyFrom",
       .renews = RenewedBy(*this, writes)});
}

void NDArray::CopyFrom(const NDArray& from, int priority) {
  if (shape() != from.shape() || dtype() != from.dtype()) {
    Throw(ErrorKind::kConfig, "copy from '{}' ({} {}) to '{}' ({} {}): shape and type must agree",
          from.who(), NameOf(from.dtype()), from.shape().ToString(), who(), NameOf(dtype()),
          shape().ToString());
  }
  if (SameView(from)) return;
  // With different layouts an element could be written before it is read, and a GPU may copy in any
  // order; the CPU moves all bytes at once.
  if (Overlaps(from) && (layout() != from.layout() || OnGpu(ctx())))
    return PushReorder(from.Copy(from.ctx()), priority);
  if (OneDevice(ctx(), from.ctx())) return PushReorder(from, priority);
  const NDArray source = from.ToPlain();
  if (layout().plain()) return PushTransfer(source, priority);
  NDArray plain(runtime(), shape(), dtype(), ctx(), {}, who());
  plain.PushTransfer(source, priority);
  PushReorder(plain, priority);
}

NDArray NDArray::ToLayout(Layout wanted) const {
  if (wanted == layout()) return *this;
  NDArray other(runtime(), shape(), dtype(), ctx(), wanted, who());
  other.PushReorder(*this);
  return other;
}

NDArray NDArray::ToPlain() const {
  return ToLayout({});
}

NDArray NDArray::Copy(Context to) const {
  NDArray copy(runtime(), shape(), dtype(), to, OneDevice(ctx(), to) ? layout() : Layout{}, who());
  copy.CopyFrom(*this);
  return copy;
}

NDArray NDArray::ToHost() const {
  return OnGpu(ctx()) ? Copy(Context::cpu_pinned(ctx().id)) : *this;
}

void NDArray::CopyFromHost(const void* elements, int64_t bytes) {
  if (bytes != PlainBytes()) {
    Throw(ErrorKind::kConfig, "{} bytes from the host for array '{}' of {} {}, which holds {}",
          bytes, who(), NameOf(dtype()), shape().ToString(), PlainBytes());
  }
  engine::RefuseInsideFunction(&runtime().engine(), "CopyFromHost");
  if (!layout().plain()) {
    NDArray plain(runtime(), shape(), dtype(), ctx(), {}, who());
    plain.CopyFromHost(elements, bytes);
    return PushReorder(plain);
  }
  Backend* backend = &runtime().backend(ctx());
  const engine::VarHandle writes[] = {var()};
  runtime().engine().PushSync(
      [backend, elements, target = place(), bytes](RunContext ctx) {
        backend->CopyBytes(ctx, Context::cpu(), elements, target.memory->ctx, target.Take(), bytes);
      },
      {}, writes,
      {.ctx = ctx(),
       .property = engine::FnProperty::kCopyToDevice,
       .name = "NDArray::CopyFromHost",
       .renews = RenewedBy(*this, writes)});
  WaitToRead();
}

void NDArray::CopyToHost(void* elements, int64_t bytes) const {
  if (bytes != PlainBytes()) {
    Throw(ErrorKind::kConfig, "{} bytes on the host for array '{}' of {} {}, which holds {}", bytes,
          who(), NameOf(dtype()), shape().ToString(), PlainBytes());
  }
  WaitToRead();  // first, so an error of the array is thrown and cleared on its own variable
  const NDArray source = ToPlain();
  engine::Engine& engine = runtime().engine();
  Backend* backend = &runtime().backend(ctx());
  const engine::VarHandle done = engine.NewVar();
  const engine::VarHandle reads[] = {source.var()}, writes[] = {done};
  engine.PushSync(
      [backend, elements, source = source.place(), bytes](RunContext ctx) {
        backend->CopyBytes(ctx, source.memory->ctx, source.Take(), Context::cpu(), elements, bytes);
      },
      reads, writes,
      {.ctx = ctx(),
       .property = engine::FnProperty::kCopyFromDevice,
       .name = "NDArray::CopyToHost"});
  std::exception_ptr error;
  try {
    engine.WaitToRead(done);
  } catch (...) {
    error = std::current_exception();
  }
  engine.DeleteVariable(done, {}, ctx());
  if (error) std::rethrow_exception(error);
}

std::vector<float> NDArray::ToVector() const {
  std::vector<float> values(static_cast<size_t>(shape().Size()));
  WithType(dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, float>) {
      CopyToHost(values.data(), PlainBytes());
    } else {
      std::vector<T> elements(values.size());
      CopyToHost(elements.data(), PlainBytes());
      std::transform(elements.begin(), elements.end(), values.begin(),
                     [](T v) { return static_cast<float>(v); });
    }
  });
  return values;
}

}  // namespace mxtrain
