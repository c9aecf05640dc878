// SPDX-License-Identifier: Apache-2.0
// What is read follows torch/serialization.py and torch/_utils.py of PyTorch.
#include "mxtrain/ndarray/torch_file.h"
#include "mxtrain/ndarray/internal/refuse_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/ndarray/internal/file_shape.h"
#include "mxtrain/ndarray/internal/pickle.h"
#include "mxtrain/ndarray/internal/torch_object.h"
#include "mxtrain/ndarray/internal/zip.h"

namespace mxtrain {
namespace {

using torch_object::CalleeOf;
using torch_object::IsTensor;
using torch_object::kAdvice;
using torch_object::kParameter;
using Kind = PickleValue::Kind;
using Values = std::span<const PickleValue>;

constexpr std::string_view kZip("PK\x03\x04", 4);
// A pickle of protocol 2 that holds the number 0x1950a86a20f9469cfc6c.
constexpr std::string_view kStream("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
constexpr int64_t kStreamProtocol = 1001;
constexpr std::string_view kTar = "ustar";
constexpr size_t kTarAt = 257;

constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor",  // before 0.4
    kRebuildTensorV2 = "torch._utils._rebuild_tensor_v2",
                           kRebuildParameter = "torch._utils._rebuild_parameter",
                           kRebuildStated = "torch._utils._rebuild_parameter_with_state",
                           kRebuildFromType = "torch._tensor._rebuild_from_type_v2";
struct Element {
  std::string_view storage;
  size_t size;                // in the file
  std::optional<DType> type;  // here; nothing: not supported
};
constexpr Element kElements[] = {{"torch.FloatStorage", 4, DType::kFloat32},
                                 {"torch.DoubleStorage", 8, DType::kFloat64},
                                 {"torch.HalfStorage", 2, DType::kFloat16},
                                 {"torch.BFloat16Storage", 2, DType::kBfloat16},
                                 {"torch.LongStorage", 8, DType::kInt64},
                                 {"torch.IntStorage", 4, DType::kInt32},
                                 {"torch.ShortStorage", 2, DType::kInt32},
                                 {"torch.CharStorage", 1, DType::kInt32},
                                 {"torch.ByteStorage", 1, DType::kUint8},
                                 {"torch.BoolStorage", 1, DType::kUint8},
                                 {"torch.ComplexHalfStorage", 4, {}},
                                 {"torch.ComplexFloatStorage", 8, {}},
                                 {"torch.ComplexDoubleStorage", 16, {}},
                                 {"torch.QInt8Storage", 1, {}},
                                 {"torch.QUInt8Storage", 1, {}},
                                 {"torch.QInt32Storage", 4, {}},
                                 {"torch.QUInt4x2Storage", 1, {}},
                                 {"torch.QUInt2x4Storage", 1, {}},
                                 {"torch.storage.UntypedStorage", 1, {}},
                                 {"torch.UntypedStorage", 1, {}}};

constexpr int kMostWrapped = 4;  // tensors in parameters
constexpr size_t kMostTensors = 1 << 16;
// Tensors may share bytes or repeat them (a stride of 0), and all become arrays of their own: these
// have at most so many times the bytes of the file, and a constant for the smallest files.
constexpr int64_t kMostExpansion = 16, kFreeBytes = int64_t{1} << 20;

// ---- Names

const Element* FindElement(std::string_view name) {
  for (const Element& element : kElements) {
    if (element.storage == name) return &element;
  }
  return nullptr;
}

// ---- Storages

struct Storage {
  const Element* element;
  std::string_view bytes;
};
using Storages = std::map<std::string, Storage>;  // by key

// A persistent id: ("storage", type, key, device, elements), in streams also (key, first element,
// elements) of a part, or None.
struct Reference {
  const Element* element;  // null: of a type that is not known
  std::string_view type;
  std::string key;
  uint64_t count;
  uint64_t part_begin, part_count;
};

uint64_t CountOf(const PickleValue& value) {
  if (value.kind != Kind::kInteger || value.number < 0)
    RefuseFile("a storage whose size is not a number");
  return static_cast<uint64_t>(value.number);
}

// Every reference repeats its key: long ones would make the work quadratic. PyTorch writes numbers.
constexpr size_t kMostKeyBytes = 64;

std::string KeyOf(const PickleValue& value) {
  if (value.kind == Kind::kText) {
    if (value.text.size() > kMostKeyBytes)
      RefuseFile("a storage whose key has {} bytes; at most {} are allowed", value.text.size(),
                 kMostKeyBytes);
    return std::string(value.text);
  }
  if (value.kind != Kind::kInteger) RefuseFile("a storage without a key");
  return std::to_string(value.number);
}

Reference ReferenceOf(const Pickle& pickle, const PickleValue& value) {
  const Values id = pickle.Items(pickle.Items(value)[0]);
  if (id.size() < 5 || id[0].kind != Kind::kText || id[0].text != "storage")
    RefuseFile("a persistent id that is not of a storage");
  if (id[1].kind != Kind::kName) RefuseFile("a storage without a type");
  Reference reference{FindElement(id[1].text), id[1].text, KeyOf(id[2]), CountOf(id[4]), 0, 0};
  reference.part_count = reference.count;
  if (id.size() > 5 && id[5].kind != Kind::kNone) {
    const Values part = pickle.Items(id[5]);
    if (part.size() != 3) RefuseFile("a part of a storage without its place");
    reference.part_begin = CountOf(part[1]);
    reference.part_count = CountOf(part[2]);
  }
  return reference;
}

Storage StorageOf(const Pickle& pickle, const PickleValue& value, const Storages& storages) {
  if (value.kind != Kind::kReference) RefuseFile("its elements are not in a storage");
  const Reference reference = ReferenceOf(pickle, value);
  if (!reference.element || !reference.element->type)
    RefuseFile("elements of {} are not supported; save the tensors as float32",
               QuotedName(reference.type));
  const auto found = storages.find(reference.key);
  if (found == storages.end())
    RefuseFile("its storage {} is not in the file", QuotedName(reference.key));
  const uint64_t size = reference.element->size, count = found->second.bytes.size() / size;
  if (reference.count > count)
    RefuseFile("its storage {} has {} elements, the file holds {}", QuotedName(reference.key),
               reference.count, count);
  if (reference.part_begin > reference.count ||
      reference.part_count > reference.count - reference.part_begin)
    RefuseFile("a part of storage {} is outside it", QuotedName(reference.key));
  return {reference.element,
          found->second.bytes.substr(reference.part_begin * size, reference.part_count * size)};
}

bool IsModule(const Pickle& pickle, const PickleValue& reference) {
  const Values id = pickle.Items(pickle.Items(reference)[0]);
  return !id.empty() && id[0].kind == Kind::kText && id[0].text == "module";
}

// Calls work(reference) for every reference to a storage. One storage has one type.
template <typename Work>
void ForReferences(const Pickle& pickle, const Work& work) {
  std::map<std::string, const Element*> types;
  for (const PickleValue& value : pickle.references) {
    if (IsModule(pickle, value)) continue;
    const Reference reference = ReferenceOf(pickle, value);
    const auto [place, is_new] = types.emplace(reference.key, reference.element);
    if (place->second != reference.element)
      RefuseFile("storage {} is of two types", QuotedName(reference.key));
    if (is_new) work(reference);
  }
}

// ---- The two forms

struct Contents {
  Pickle object;
  Storages storages;
};

Contents ReadZip(std::string_view bytes) {
  constexpr std::string_view kObject = "data.pkl";
  const ZipArchive archive(bytes);
  std::optional<std::string> prefix;
  for (const auto& [name, entry] : archive.entries()) {
    if (name == "constants.pkl" || name.ends_with("/constants.pkl"))
      RefuseFile("a program of TorchScript; save the state_dict() of the module instead: {}",
                 kAdvice);
    if (name != kObject && !name.ends_with(std::string("/").append(kObject))) continue;
    if (prefix) RefuseFile("the zip archive has several entries {}", kObject);
    prefix = name.substr(0, name.size() - kObject.size());
  }
  if (!prefix) RefuseFile("a zip archive without {}, so torch.save did not write it", kObject);
  if (const std::string order = *prefix + "byteorder";
      archive.entries().contains(order) && archive.Read(order) != "little")
    RefuseFile("saved on a machine of another byte order");

  const std::string_view object = archive.Read(*prefix + std::string(kObject));
  const auto begin = static_cast<size_t>(object.data() - bytes.data());
  Contents contents{ReadPickle(bytes.substr(0, begin + object.size()), begin), {}};
  ForReferences(contents.object, [&](const Reference& reference) {
    if (!reference.element) return;
    contents.storages[reference.key] = {reference.element,
                                        archive.Read(*prefix + "data/" + reference.key)};
  });
  return contents;
}

void RequireLittleEndian(const Pickle& system) {
  const Values items = system.Items(system.root);
  if (system.root.kind != Kind::kDict) RefuseFile("the system that saved it is not described");
  for (size_t i = 0; i < items.size(); i += 2) {
    if (items[i].text == "little_endian" && items[i + 1].number == 0)
      RefuseFile("saved on a machine of another byte order");
  }
}

Contents ReadStream(std::string_view bytes) {
  const Pickle protocol = ReadPickle(bytes, kStream.size());
  if (protocol.root.kind != Kind::kInteger || protocol.root.number != kStreamProtocol)
    RefuseFile("not version {} of PyTorch's format", kStreamProtocol);
  const Pickle system = ReadPickle(bytes, protocol.end);
  RequireLittleEndian(system);
  Contents contents{ReadPickle(bytes, system.end), {}};
  const Pickle keys = ReadPickle(bytes, contents.object.end);
  if (keys.root.kind != Kind::kList) RefuseFile("no list of storages follows the object");

  std::map<std::string, const Element*> types;
  ForReferences(contents.object, [&](const Reference& reference) {
    if (!reference.element)
      RefuseFile("how long elements of {} are is not known; save the tensors as float32",
                 QuotedName(reference.type));
    types[reference.key] = reference.element;
  });
  std::string_view rest = bytes.substr(keys.end);
  for (const PickleValue& value : keys.Items(keys.root)) {
    const std::string key = KeyOf(value);
    const auto type = types.find(key);
    if (type == types.end()) RefuseFile("no tensor says what storage {} holds", QuotedName(key));
    int64_t count = 0;
    if (rest.size() < sizeof count) RefuseFile("the file ends before storage {}", QuotedName(key));
    std::memcpy(&count, rest.data(), sizeof count);
    rest.remove_prefix(sizeof count);
    const size_t size = type->second->size;
    if (count < 0 || static_cast<uint64_t>(count) > rest.size() / size)
      RefuseFile("storage {} has {} elements, more than the rest of the file", QuotedName(key),
                 count);
    const size_t size_bytes = static_cast<size_t>(count) * size;
    if (!contents.storages.emplace(key, Storage{type->second, rest.substr(0, size_bytes)}).second)
      RefuseFile("storage {} is in the file twice", QuotedName(key));
    rest.remove_prefix(size_bytes);
  }
  return contents;
}

Contents ReadContents(std::string_view bytes) {
  if (bytes.starts_with(kZip)) return ReadZip(bytes);
  if (bytes.starts_with(kStream)) return ReadStream(bytes);
  if (IsTorchFile(bytes))
    RefuseFile(
        "a tar file, as PyTorch before 0.1.10 wrote it; load it with PyTorch and save it again");
  RefuseFile(
      "not a file of torch.save: it begins neither as a zip archive nor with its magic number");
}

// ---- Tensors

struct Tensor {
  Storage storage;
  TShape shape;
  std::array<int64_t, TShape::kMaxDims> strides{};  // 0 where there is one element
  int64_t offset = 0;

  DType type() const { return *storage.element->type; }
  int64_t Bytes() const { return shape.Size() * SizeOf(type()); }
};

std::vector<int64_t> IntegersOf(const Pickle& pickle, const PickleValue& value) {
  std::vector<int64_t> result;
  if (value.kind != Kind::kTuple) RefuseFile("its shape or strides are not a tuple");
  for (const PickleValue& item : pickle.Items(value)) {
    if (item.kind != Kind::kInteger) RefuseFile("its shape or strides are not integers");
    result.push_back(item.number);
  }
  return result;
}

// Every element must be in the storage.
void RequireInside(const Tensor& tensor) {
  const auto count =
      static_cast<int64_t>(tensor.storage.bytes.size() / tensor.storage.element->size);
  const auto outside = [&] {
    const std::span strides(tensor.strides.data(), static_cast<size_t>(tensor.shape.ndim()));
    RefuseFile("shape {} with strides [{}] from element {} is outside its storage of {} elements",
               tensor.shape.ToString(), join(strides, ", "), tensor.offset, count);
  };
  if (tensor.offset < 0 || tensor.offset > count) outside();
  if (tensor.shape.Size() == 0) return;
  int64_t left = count - tensor.offset - 1;  // behind the first element
  if (left < 0) outside();
  for (int i = 0; i < tensor.shape.ndim(); ++i) {
    const int64_t steps = tensor.shape[i] - 1, stride = tensor.strides[static_cast<size_t>(i)];
    if (steps == 0) continue;
    if (stride < 0 || stride > left / steps) outside();
    left -= stride * steps;
  }
}

// (storage, offset, shape, strides, requires_grad, hooks, metadata); older files end earlier.
Tensor Rebuilt(const Pickle& pickle, Values arguments, const Storages& storages) {
  if (arguments.size() < 4 || arguments[1].kind != Kind::kInteger)
    RefuseFile("it is not described by storage, offset, shape and strides");
  if (arguments.size() > 6 && !pickle.Items(arguments[6]).empty())
    RefuseFile(
        "it is a conjugate or negative view; save a copy of it (resolve_conj(), resolve_neg())");
  const std::vector<int64_t> dims = IntegersOf(pickle, arguments[2]),
                             strides = IntegersOf(pickle, arguments[3]);
  if (dims.size() != strides.size())
    RefuseFile("it has {} dimensions and {} strides", dims.size(), strides.size());
  Tensor tensor{
      StorageOf(pickle, arguments[0], storages), FileShape(dims), {}, arguments[1].number};
  for (size_t i = 0; i < dims.size(); ++i) tensor.strides[i] = dims[i] > 1 ? strides[i] : 0;
  RequireInside(tensor);
  return tensor;
}

// A tensor, or what is around one: _rebuild_parameter(tensor, ...), _rebuild_from_type_v2(function,
// class, arguments, attributes), before 0.4 Parameter(tensor) or, as its state, (tensor, ...).
Tensor TensorOf(const Pickle& pickle, PickleValue value, const Storages& storages) {
  std::string_view function;
  for (int depth = 0; depth < kMostWrapped && value.kind == Kind::kCall; ++depth) {
    const Values call = pickle.Items(value);
    function = CalleeOf(pickle, value);
    Values arguments = pickle.Items(call[1]);
    if (function == kRebuildFromType && arguments.size() > 2 && arguments[0].kind == Kind::kName) {
      function = arguments[0].text;
      arguments = pickle.Items(arguments[2]);
    }
    if (function == kRebuildTensor || function == kRebuildTensorV2)
      return Rebuilt(pickle, arguments, storages);
    if (function != kParameter && function != kRebuildParameter && function != kRebuildStated)
      RefuseFile(
          "it is of a kind that is not supported (sparse, quantized, ...), made by {}; save a "
          "dense copy of it in float32",
          QuotedName(function));
    if (arguments.empty()) arguments = pickle.Items(call[2]);
    if (arguments.empty()) break;
    value = arguments[0];
  }
  RefuseFile("it is not a tensor in a way that torch.save writes");
}

// ---- All tensors

using Tensors = std::map<std::string_view, Tensor>;

Tensors ReadTensors(std::string_view bytes, const std::string& wanted, TorchStates* states) {
  const Contents contents = ReadContents(bytes);
  const Pickle& pickle = contents.object;
  const torch_object::State state = torch_object::StateOf(pickle, wanted);
  if (states) *states = {state.path, torch_object::OthersLike(pickle, state)};
  const Values dict = pickle.DictItems(state.dict);
  const int64_t most_bytes = kMostExpansion * static_cast<int64_t>(bytes.size()) + kFreeBytes;
  int64_t total_bytes = 0;
  Tensors tensors;
  for (size_t i = 0; i < dict.size(); i += 2) {
    if (dict[i].kind != Kind::kText || !IsTensor(pickle, dict[i + 1])) continue;
    const std::string_view name = dict[i].text;
    if (!IsUtf8(name)) RefuseFile("the name {} is not UTF-8", QuotedName(name));
    try {
      const auto [place, is_new] =
          tensors.emplace(name, TensorOf(pickle, dict[i + 1], contents.storages));
      if (!is_new) RefuseFile("its name occurs twice");
      total_bytes += place->second.Bytes();
    } catch (const Error& error) {
      RefuseFile("tensor {}: {}", QuotedName(name), error.what());
    }
    if (total_bytes > most_bytes)
      RefuseFile(
          "its tensors share or repeat their bytes, more than {} times the file in all; save "
          "copies of them (contiguous())",
          kMostExpansion);
    if (tensors.size() > kMostTensors)
      RefuseFile("it holds more than {} tensors, the most that are supported", kMostTensors);
  }
  return tensors;
}

// ---- Elements

// In row-major order, of type To.
template <typename From, typename To = From>
std::string Gathered(const Tensor& tensor) {
  const TShape& shape = tensor.shape;
  std::string out(static_cast<size_t>(shape.Size()) * sizeof(To), '\0');
  std::array<int64_t, TShape::kMaxDims> at{};
  int64_t element = tensor.offset;
  for (size_t end = 0; end < out.size(); end += sizeof(To)) {
    From from;
    std::memcpy(&from, tensor.storage.bytes.data() + element * int64_t{sizeof from}, sizeof from);
    const To to = from;
    std::memcpy(out.data() + end, &to, sizeof to);
    for (int i = shape.ndim() - 1; i >= 0; --i) {
      const auto axis = static_cast<size_t>(i);
      element += tensor.strides[axis];
      if (++at[axis] < shape[i]) break;
      element -= tensor.strides[axis] * shape[i];
      at[axis] = 0;
    }
  }
  return out;
}

bool IsContiguous(const Tensor& tensor) {
  int64_t stride = 1;
  for (int i = tensor.shape.ndim() - 1; i >= 0; --i) {
    if (tensor.shape[i] > 1 && tensor.strides[static_cast<size_t>(i)] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

std::string Gather(const Tensor& tensor) {
  const Element& element = *tensor.storage.element;
  const bool wider = SizeOf(tensor.type()) != static_cast<int64_t>(element.size);
  switch (element.size) {
    case 1:
      return wider ? Gathered<int8_t, int32_t>(tensor) : Gathered<uint8_t>(tensor);
    case 2:
      return wider ? Gathered<int16_t, int32_t>(tensor) : Gathered<uint16_t>(tensor);
    case 4:
      return Gathered<uint32_t>(tensor);
    default:
      return Gathered<uint64_t>(tensor);
  }
}

void CopyElements(const Tensor& tensor, NDArray* array) {
  const Element& element = *tensor.storage.element;
  if (!IsContiguous(tensor) || SizeOf(tensor.type()) != static_cast<int64_t>(element.size)) {
    const std::string elements = Gather(tensor);
    array->CopyFromHost(elements.data(), tensor.Bytes());
  } else {
    array->CopyFromHost(
        tensor.storage.bytes.data() + tensor.offset * static_cast<int64_t>(element.size),
        tensor.Bytes());
  }
}

}  // namespace

bool IsTorchFile(std::string_view begin) {
  return begin.starts_with(kZip) || begin.starts_with(kStream) ||
         (begin.size() > kTarAt && begin.substr(kTarAt).starts_with(kTar));
}

NamedArrays DeserializeTorchFile(Runtime& runtime, std::string_view bytes,
                                 const std::string& file_name, const std::string& state,
                                 TorchStates* states) {
  Tensors tensors;
  try {
    tensors = ReadTensors(bytes, state, states);
  } catch (const Error& error) {
    Throw(error.kind(), "{}: {}", file_name, error.what());
  }
  NamedArrays result;
  for (const auto& [name, tensor] : tensors) {
    NDArray& array = result.arrays.emplace_back(runtime, tensor.shape, tensor.type(),
                                                Context::cpu(), Layout(), std::string(name));
    CopyElements(tensor, &array);
    result.names.emplace_back(name);
  }
  return result;
}

}  // namespace mxtrain
