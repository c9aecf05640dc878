// SPDX-License-Identifier: Apache-2.0
#pragma once
// Python's pickles of protocol 2, read as data: the values, and the calls that Python would make.
// None is made here. Private to ndarray.
//
// Values refer to one another by index, so neither a cycle nor any depth of nesting costs more than
// its bytes; time and memory are linear in these. Whoever walks the values has to bound the walk: a
// value may be reached by exponentially many paths.
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace mxtrain {

struct PickleValue {
  enum class Kind {
    kNone,
    kBool,
    kInteger,
    kOther,  // a float, or an integer beyond 64 bits
    kText,   // bytes as they are; those of Python 3 are UTF-8
    kTuple,
    kList,
    kDict,       // also an OrderedDict
    kName,       // a class or a function
    kCall,       // of a name
    kReference,  // a persistent id
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;     // of kBool and kInteger; of those with items, their index
  std::string_view text;  // of kText and kName
};

struct Pickle {
  // What `value` consists of. A tuple or list: its values. A dict: key, value, key, value. A call:
  // the name, the tuple of arguments, and the state that was set afterwards, if any. A reference:
  // the persistent id. Others have none.
  std::span<const PickleValue> Items(const PickleValue& value) const;

  PickleValue root;
  size_t end = 0;  // behind the last opcode
  std::vector<PickleValue> references;
  std::vector<std::vector<PickleValue>> items;  // by index
};

inline constexpr std::string_view kOrderedDict = "collections.OrderedDict";

// For "module.name": the same text for as long as the pickle is used, or an Error that refuses it.
using PickleNames = std::function<std::string_view(std::string_view)>;

// The pickle that begins at `at` of the bytes, which must outlive it. Throws kData, with the
// position in the bytes, for a damaged one, an opcode that tensors do not need, and a name that
// `names` refuses.
Pickle ReadPickle(std::string_view bytes, size_t at, const PickleNames& names);

}  // namespace mxtrain
