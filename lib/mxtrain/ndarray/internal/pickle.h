// SPDX-License-Identifier: Apache-2.0
#pragma once
// Python's pickles of protocols 2 to 5, read as data: the values, and the calls that Python would
// make. None is made here, of whatever class or function. Private to ndarray.
//
// Values refer to one another by index, so neither a cycle nor any depth of nesting costs more than
// its bytes; time and memory are linear in these. Whoever walks the values has to bound the walk: a
// value may be reached by exponentially many paths.
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mxtrain {

struct PickleValue {
  enum class Kind {
    kNone,
    kBool,
    kInteger,
    kOther,      // a float, bytes, or an integer beyond 64 bits
    kText,       // bytes as they are; those of Python 3 are UTF-8, but for lone surrogates
    kTuple,      // also a frozenset
    kList,       // also a set
    kDict,       // also an OrderedDict
    kName,       // a class or a function, "module.name"
    kCall,       // of a name, or of what another call or a reference gives: an object
    kReference,  // a persistent id
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;     // of kBool and kInteger; of those with items, their index
  std::string_view text;  // of kText and kName
};

struct Pickle {
  // What `value` consists of. A tuple or list: its values. A dict: key, value, key, value. A call:
  // what is called, the tuple of arguments, and the state that was set afterwards (or None). A
  // reference: the persistent id. Others have none.
  std::span<const PickleValue> Items(const PickleValue& value) const;
  // Key, value, key, value of a dict, and of an object that items were put into as into one.
  std::span<const PickleValue> DictItems(const PickleValue& value) const;

  PickleValue root;
  size_t end = 0;  // behind the last opcode
  std::vector<PickleValue> references;
  std::vector<std::vector<PickleValue>> items;  // by index
  std::set<std::string, std::less<>> names;     // the texts of kName
};

inline constexpr std::string_view kOrderedDict = "collections.OrderedDict";

// The pickle that begins at `at` of the bytes, which must outlive it. Throws kData, with the
// position in the bytes, for a damaged one and for opcodes that torch.save does not write.
Pickle ReadPickle(std::string_view bytes, size_t at);

}  // namespace mxtrain
