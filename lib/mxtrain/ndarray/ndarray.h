// SPDX-License-Identifier: Apache-2.0
#pragma once
// An asynchronous n-dimensional array: bytes, an engine variable and a layout, shared by all copies
// of the handle. Calls push work and return; WaitToRead and the host copies wait. Arithmetic is in
// operator/arithmetic.h and is found by argument-dependent lookup.
//
// Copies of a handle may be used from any thread; one handle must not be assigned and read
// concurrently. The Runtime must outlive every array.
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "mxtrain/ndarray/resource.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain {

class ArrayMemory;

class MXTRAIN_API NDArray {
 public:
  NDArray() = default;  // empty() is true
  // Uninitialized elements (padding of an opaque layout is zeroed). Memory is allocated by the
  // first function that uses it, or by data(), which throws kMemory on failure. `who`: the holder's
  // name in memory reports.
  NDArray(Runtime& runtime, const TShape& shape, DType type = DType::kFloat32,
          Context ctx = Context::cpu(), Layout layout = {}, const std::string& who = "array");
  // A part of another array's bytes, with that array's variable; used to divide the arena.
  NDArray(const NDArray& owner, int64_t byte_offset, const TShape& shape, DType type,
          Layout layout);
  // From plain host elements, which are copied at once.
  static NDArray FromVector(Runtime& runtime, const TShape& shape, const std::vector<float>& values,
                            Context ctx = Context::cpu());
  static NDArray Zeros(Runtime& runtime, const TShape& shape, DType type = DType::kFloat32,
                       Context ctx = Context::cpu(), Layout layout = {});

  bool empty() const { return chunk_ == nullptr; }
  const TShape& shape() const { return spec_.shape; }
  DType dtype() const { return spec_.type; }
  Layout layout() const { return spec_.layout; }
  const TensorSpec& spec() const { return spec_; }
  Context ctx() const;
  engine::VarHandle var() const;
  Runtime& runtime() const;
  const std::string& who() const;  // holder's name
  bool SharesMemory(const NDArray& other) const {
    return chunk_ == other.chunk_;
  }                                           // parts of one allocation
  bool Overlaps(const NDArray& other) const;  // at least one common byte
  // The same elements: bytes, shape, type and layout.
  bool SameView(const NDArray& other) const {
    return chunk_ == other.chunk_ && offset_ == other.offset_ && spec_ == other.spec_;
  }

  bool IsWhole() const;  // covers its whole allocation: writing all elements renews its variable

  // Views that share the bytes. Plain arrays only; others throw an Error that names ToPlain().
  NDArray Slice(int64_t begin, int64_t end) const;  // along the first axis
  NDArray Reshape(const TShape& shape) const;       // same number of elements

  NDArray ToPlain() const;  // the same handle if already plain
  // Readable by CPU functions: itself, or for a GPU array a plain copy in pinned memory.
  NDArray ToHost() const;
  NDArray ToLayout(Layout layout) const;  // the same handle if unchanged
  // A new array of the same layout; plain on another kind of device.
  NDArray Copy(Context ctx) const;
  // Any layout and device on both sides; equal shape and type, else kConfig. Views of one array may
  // overlap.
  void CopyFrom(const NDArray& from, int priority = 0);
  // Plain elements; both return once these are copied.
  void CopyFromHost(const void* elements, int64_t bytes);
  void CopyToHost(void* elements, int64_t bytes) const;
  std::vector<float> ToVector() const;  // plain, converted to float; waits
  // All elements; padding stays zero. Throws kConfig for a value that the type cannot hold.
  void Fill(double value);
  // The same. A template, so that `array = {}` still makes a handle empty.
  template <typename Number>
  NDArray& operator=(Number value) requires std::is_arithmetic_v<Number> {
    Fill(static_cast<double>(value));
    return *this;
  }

  void WaitToRead() const;   // pending writes
  void WaitToWrite() const;  // pending reads and writes

  // The bytes, allocated now if unused so far. Valid only inside a pushed function that names
  // var(), or after a wait with nothing pushed since.
  TBlob data() const;

 private:
  struct Chunk;
  // Location of the elements, for pushed functions. Does not own the array; valid in functions
  // pushed on the variable before the last handle is gone.
  struct Place {
    ArrayMemory* memory;
    int64_t offset;
    void* Take() const;  // null if there are no bytes
  };
  Place place() const;
  Chunk& chunk() const;  // kBug when empty
  ArrayMemory& memory() const;
  void RequirePlain(const char* what) const;                // throws the Error that names ToPlain()
  int64_t PlainBytes() const;                               // of the elements, without padding
  void PushZeros();                                         // every byte, padding included
  void PushReorder(const NDArray& from, int priority = 0);  // both on one backend
  void PushTransfer(const NDArray& from, int priority = 0);  // both plain, any devices
  void PushRepeated(const NDArray& piece);  // this on a GPU, `piece` on the host and not larger
  std::shared_ptr<Chunk> chunk_;
  int64_t offset_ = 0;  // bytes
  TensorSpec spec_;
};

// MXNet's ".params" files: a list of arrays with names ("arg:conv1_weight") or without. Reads
// versions V0 to V3 (dense), writes V2 (V3 for scalars and empty arrays, which V2 cannot express).
// Damaged or sparse files and unsupported element types throw kData with the offset and the reason,
// before any array is created. Arrays are saved plain and loaded to the CPU; a record without a
// shape is an empty NDArray both ways.
struct NamedArrays {
  std::vector<std::string> names;  // empty for an unnamed list
  std::vector<NDArray> arrays;
};
MXTRAIN_API std::string SerializeArrays(const NamedArrays& arrays);  // waits for each
MXTRAIN_API NamedArrays DeserializeArrays(Runtime& runtime, std::string_view bytes,
                                          const std::string& file_name);
MXTRAIN_API void SaveArrays(const std::string& path, const NamedArrays& arrays);
MXTRAIN_API NamedArrays LoadArrays(Runtime& runtime, const std::string& path);

}  // namespace mxtrain
