// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/ndarray.h"

#include "mxtrain/base/error.h"
#include "mxtrain/ndarray/internal/chunk.h"

namespace mxtrain {

char* ArrayMemory::Take() {
  if (char* data = data_.load(std::memory_order_acquire)) return data;
  const MutexLock lock(mutex_);
  if (!handle_.ptr) {
    handle_ = storage_.Alloc(ctx, bytes, who.c_str());
    if (retired_) storage_.Retire(handle_);
    data_.store(static_cast<char*>(handle_.ptr), std::memory_order_release);
  }
  return static_cast<char*>(handle_.ptr);
}

void ArrayMemory::Retire() {
  const MutexLock lock(mutex_);
  retired_ = true;
  storage_.Retire(handle_);
}

NDArray::Chunk::Chunk(Runtime& owner, Context ctx, int64_t bytes, std::string who)
    : runtime(owner) {
  CheckDevice(runtime.backend(ctx), ctx);
  memory = std::make_unique<ArrayMemory>(runtime.storage(), ctx, bytes, std::move(who));
  var = runtime.engine().NewVar();
}

NDArray::Chunk::~Chunk() {
  const Context ctx = memory->ctx;
  memory->Retire();
  runtime.engine().DeleteVariable(
      var, [memory = std::move(memory)](RunContext) mutable { memory.reset(); }, ctx);
}

NDArray::NDArray(Runtime& runtime, const TShape& shape, DType type, Context ctx, Layout layout,
                 const std::string& who)
    : spec_{shape, type, layout} {
  if (!spec_.known())
    Throw(ErrorKind::kConfig, "array '{}' of shape {} and type {}: both must be known", who,
          shape.ToString(), NameOf(type));
  chunk_ = std::make_shared<Chunk>(runtime, ctx, spec_.Bytes(), who);
  if (layout.Padded(shape)) PushZeros();
}

NDArray::NDArray(const NDArray& owner, int64_t byte_offset, const TShape& shape, DType type,
                 Layout layout)
    : chunk_(owner.chunk_), offset_(owner.offset_ + byte_offset), spec_{shape, type, layout} {
  if (!spec_.known() || byte_offset < 0 || offset_ + spec_.Bytes() > memory().bytes ||
      offset_ % SizeOf(type) != 0) {
    Throw(ErrorKind::kBug, "a part of shape {} at byte {} is outside the {} bytes of '{}'",
          shape.ToString(), offset_, memory().bytes, who());
  }
}

NDArray NDArray::FromVector(Runtime& runtime, const TShape& shape, const std::vector<float>& values,
                            Context ctx) {
  NDArray array(runtime, shape, DType::kFloat32, ctx);
  if (shape.Size() != static_cast<int64_t>(values.size())) {
    Throw(ErrorKind::kConfig, "{} values for an array of shape {}", values.size(),
          shape.ToString());
  }
  array.CopyFromHost(values.data(), array.PlainBytes());
  return array;
}

NDArray NDArray::Zeros(Runtime& runtime, const TShape& shape, DType type, Context ctx,
                       Layout layout) {
  NDArray array(runtime, shape, type, ctx, layout);
  if (!layout.Padded(shape)) array.PushZeros();  // padded ones were zeroed before
  return array;
}

NDArray::Chunk& NDArray::chunk() const {
  if (!chunk_) Throw(ErrorKind::kBug, "an empty NDArray was used; give it a shape first");
  return *chunk_;
}

ArrayMemory& NDArray::memory() const {
  return *chunk().memory;
}

Context NDArray::ctx() const {
  return memory().ctx;
}
engine::VarHandle NDArray::var() const {
  return chunk().var;
}
Runtime& NDArray::runtime() const {
  return chunk().runtime;
}
const std::string& NDArray::who() const {
  return memory().who;
}
int64_t NDArray::PlainBytes() const {
  return spec_.shape.Size() * SizeOf(spec_.type);
}

bool NDArray::Overlaps(const NDArray& other) const {
  return SharesMemory(other) && offset_ < other.offset_ + other.spec_.Bytes() &&
         other.offset_ < offset_ + spec_.Bytes();
}

bool NDArray::IsWhole() const {
  return offset_ == 0 && spec_.Bytes() == memory().bytes;
}

void NDArray::RequirePlain(const char* what) const {
  if (layout().plain()) return;
  Throw(ErrorKind::kConfig, "{} of array '{}': its layout is {}; call ToPlain() first", what, who(),
        layout().Name());
}

NDArray NDArray::Slice(int64_t begin, int64_t end) const {
  RequirePlain("Slice");
  if (shape().ndim() < 1 || begin < 0 || begin > end || end > shape()[0]) {
    Throw(ErrorKind::kConfig,
          "Slice [{}, {}) of array '{}' of shape {}: the range must be within the first axis",
          begin, end, who(), shape().ToString());
  }
  NDArray part = *this;
  part.offset_ += begin * shape().Product(1, shape().ndim()) * SizeOf(dtype());
  part.spec_.shape[0] = end - begin;
  return part;
}

NDArray NDArray::Reshape(const TShape& shape) const {
  RequirePlain("Reshape");
  chunk();
  if (!shape.known() || shape.Size() != spec_.shape.Size()) {
    Throw(ErrorKind::kConfig, "Reshape of array '{}' from {} to {}: the numbers of elements differ",
          who(), spec_.shape.ToString(), shape.ToString());
  }
  NDArray view = *this;
  view.spec_.shape = shape;
  return view;
}

void NDArray::WaitToRead() const {
  runtime().engine().WaitToRead(var());
}
void NDArray::WaitToWrite() const {
  runtime().engine().WaitForVar(var());
}

TBlob NDArray::data() const {
  return {place().Take(), spec_.shape, spec_.type, spec_.layout, ctx()};
}

NDArray::Place NDArray::place() const {
  return {&memory(), offset_};
}

void* NDArray::Place::Take() const {
  char* base = memory->Take();
  return base ? base + offset : nullptr;
}

}  // namespace mxtrain
