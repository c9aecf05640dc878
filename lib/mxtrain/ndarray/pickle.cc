// SPDX-License-Identifier: Apache-2.0
// The opcodes are those of CPython's Lib/pickletools.py.
#include "mxtrain/ndarray/internal/pickle.h"

#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/ndarray/internal/refuse_file.h"

namespace mxtrain {
namespace {

static_assert(std::endian::native == std::endian::little);

using Kind = PickleValue::Kind;
using ValueList = std::vector<PickleValue>;

constexpr int kLeastProtocol = 2, kMostProtocol = 5;

// Opcodes that are refused.
constexpr std::pair<uint8_t, const char*> kRefused[] = {
    {'2', "DUP"},     {'F', "FLOAT"},        {'I', "INT"},
    {'L', "LONG"},    {'P', "PERSID"},       {'S', "STRING"},
    {'V', "UNICODE"}, {'d', "DICT"},         {'g', "GET"},
    {'i', "INST"},    {'l', "LIST"},         {'o', "OBJ"},
    {'p', "PUT"},     {0x82, "EXT1"},        {0x83, "EXT2"},
    {0x84, "EXT4"},   {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
};

// What is called, its arguments and the state; items of a dict follow.
constexpr size_t kOfCall = 3;

// A state dict of a large net has a tenth of them; a byte of a file can push one.
constexpr size_t kMostPushed = size_t{1} << 22;

[[noreturn]] void Refuse(uint8_t opcode) {
  for (const auto& [code, name] : kRefused) {
    if (code == opcode) RefuseFile("opcode {} does not occur in what torch.save writes", name);
  }
  RefuseFile("0x{:02x} is not an opcode of a pickle; the file is damaged", opcode);
}

// The machine that pickles are programs of, without its power to call anything.
class Machine {
 public:
  Machine(std::string_view bytes, size_t at) : bytes_(bytes), at_(at) {}

  Pickle Run() {
    try {
      do {
        opcode_at_ = at_;
      } while (Step(Number<uint8_t>()));
    } catch (const Error& error) {
      RefuseFile("at byte {}: {}", opcode_at_, error.what());
    }
    pickle_.end = at_;
    return std::move(pickle_);
  }

 private:
  // Whether the program continues.
  bool Step(uint8_t opcode) {
    if (opcode == '.') {
      pickle_.root = Pop();
      if (!stack_.empty() || !marks_.empty()) RefuseFile("the pickle ends with values left over");
      return false;
    }
    if (!PushScalar(opcode) && !Collect(opcode) && !Refer(opcode)) Refuse(opcode);
    return true;
  }

  // Values that stand in the opcode.
  bool PushScalar(uint8_t opcode) {
    switch (opcode) {
      case 'N':  // NONE
        return Push(PickleValue());
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        return Push({Kind::kBool, opcode == 0x88 ? 1 : 0, {}});
      case 'J':  // BININT
        return Push({Kind::kInteger, Number<int32_t>(), {}});
      case 'K':  // BININT1
        return Push({Kind::kInteger, Number<uint8_t>(), {}});
      case 'M':  // BININT2
        return Push({Kind::kInteger, Number<uint16_t>(), {}});
      case 0x8a:  // LONG1
        return Push(LongOf(Take(Number<uint8_t>())));
      case 0x8b:  // LONG4
        return Push(LongOf(Take(Number<uint32_t>())));
      case 'G':  // BINFLOAT
        return Skip(sizeof(double));
      case 'C':  // SHORT_BINBYTES
        return Skip(Number<uint8_t>());
      case 'B':  // BINBYTES
        return Skip(Number<uint32_t>());
      case 0x8e:  // BINBYTES8
      case 0x96:  // BYTEARRAY8
        return Skip(Number<uint64_t>());
      case 'X':  // BINUNICODE
      case 'T':  // BINSTRING
        return Push({Kind::kText, 0, Take(Number<uint32_t>())});
      case 'U':   // SHORT_BINSTRING
      case 0x8c:  // SHORT_BINUNICODE
        return Push({Kind::kText, 0, Take(Number<uint8_t>())});
      case 0x8d:  // BINUNICODE8
        return Push({Kind::kText, 0, Take(Number<uint64_t>())});
      case 'c': {  // GLOBAL
        const std::string_view module = Line(), name = Line();
        return PushName(module, name);
      }
      default:
        return false;
    }
  }

  // Values that consist of others.
  bool Collect(uint8_t opcode) {
    switch (opcode) {
      case '(':  // MARK
        marks_.push_back(stack_.size());
        return true;
      case ')':  // EMPTY_TUPLE
        return Push(Kind::kTuple, {});
      case ']':   // EMPTY_LIST
      case 0x8f:  // EMPTY_SET
        return Push(Kind::kList, {});
      case '}':  // EMPTY_DICT
        return Push(Kind::kDict, {});
      case 't':   // TUPLE
      case 0x91:  // FROZENSET
        return Push(Kind::kTuple, PopToMark());
      case 0x85:  // TUPLE1
      case 0x86:  // TUPLE2
      case 0x87:  // TUPLE3
        return Push(Kind::kTuple, PopLast(opcode - 0x84u));
      case 'a':  // APPEND
        return Extend(Kind::kList, PopLast(1));
      case 'e':   // APPENDS
      case 0x90:  // ADDITEMS
        return Extend(Kind::kList, PopToMark());
      case 's':  // SETITEM
        return Extend(Kind::kDict, PopLast(2));
      case 'u':  // SETITEMS
        return Extend(Kind::kDict, PopToMark());
      case '0':  // POP
        Pop();
        return true;
      case '1':  // POP_MARK
        PopToMark();
        return true;
      default:
        return false;
    }
  }

  // The memo, persistent ids and calls.
  bool Refer(uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const int protocol = Number<uint8_t>();
            protocol < kLeastProtocol || protocol > kMostProtocol)
          RefuseFile(
              "a pickle of protocol {}; {} to {} are supported, and torch.save uses {} by default",
              protocol, kLeastProtocol, kMostProtocol, kLeastProtocol);
        return true;
      case 0x95:  // FRAME: how many bytes Python may read at once
        Take(sizeof(uint64_t));
        return true;
      case 'q':  // BINPUT
        return Put(Number<uint8_t>());
      case 'r':  // LONG_BINPUT
        return Put(Number<uint32_t>());
      case 0x94:  // MEMOIZE
        return Put(static_cast<uint32_t>(memo_.size()));
      case 'h':  // BINGET
        return Get(Number<uint8_t>());
      case 'j':  // LONG_BINGET
        return Get(Number<uint32_t>());
      case 'Q':  // BINPERSID
        Push(Kind::kReference, PopLast(1));
        pickle_.references.push_back(Top());
        return true;
      case 'R':   // REDUCE
      case 0x81:  // NEWOBJ
        return Call(PopLast(2));
      case 0x92:  // NEWOBJ_EX: the arguments with names are not kept
        PopKind(Kind::kDict);
        return Call(PopLast(2));
      case 0x93: {  // STACK_GLOBAL
        const PickleValue name = PopKind(Kind::kText), module = PopKind(Kind::kText);
        return PushName(module.text, name.text);
      }
      case 'b':  // BUILD
        return Build();
      default:
        return false;
    }
  }

  // ---- Bytes

  std::string_view Take(size_t size) {
    if (at_ > bytes_.size() || size > bytes_.size() - at_) RefuseFile("the pickle ends early");
    return bytes_.substr(std::exchange(at_, at_ + size), size);
  }
  template <typename T>
  T Number() {
    T value;
    std::memcpy(&value, Take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view Line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) RefuseFile("the pickle ends early");
    const std::string_view line = Take(end - at_);
    ++at_;
    return line;
  }
  // Two's complement of any number of bytes.
  static PickleValue LongOf(std::string_view bytes) {
    uint64_t value = 0;
    if (bytes.size() > sizeof value) return {Kind::kOther, 0, {}};
    if (!bytes.empty() && static_cast<signed char>(bytes.back()) < 0) value = ~uint64_t{0};
    std::memcpy(&value, bytes.data(), bytes.size());
    return {Kind::kInteger, static_cast<int64_t>(value), {}};
  }

  // ---- The stack; values below the last mark are out of reach

  // One byte can push a value of many bytes.
  void Count() {
    if (++pushed_ > kMostPushed) RefuseFile("more than {} values", kMostPushed);
  }
  bool Push(const PickleValue& value) {
    Count();
    stack_.push_back(value);
    return true;
  }
  // A value that nothing here needs.
  bool Skip(uint64_t size) {
    Take(size);
    return Push({Kind::kOther, 0, {}});
  }
  bool PushName(std::string_view module, std::string_view name) {
    return Push({Kind::kName, 0,
                 *pickle_.names.insert(std::string(module).append(".").append(name)).first});
  }
  bool Push(Kind kind, ValueList items) {
    Count();
    stack_.push_back({kind, static_cast<int64_t>(pickle_.items.size()), {}});
    pickle_.items.push_back(std::move(items));
    return true;
  }
  const PickleValue& Top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) RefuseFile("a value is missing");
    return stack_.back();
  }
  PickleValue Pop() {
    const PickleValue value = Top();
    stack_.pop_back();
    return value;
  }
  PickleValue PopKind(Kind kind) {
    if (Top().kind != kind) RefuseFile("a value of another kind is expected");
    return Pop();
  }
  ValueList PopLast(size_t count) {
    if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count)
      RefuseFile("a value is missing");
    ValueList values(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return values;
  }
  ValueList PopToMark() {
    if (marks_.empty()) RefuseFile("a MARK is missing");
    ValueList values = PopLast(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }
  ValueList& ItemsOf(const PickleValue& value) {
    return pickle_.items[static_cast<size_t>(value.number)];
  }

  // Into a list, a dict, or an object, of which the values of a list are not kept.
  bool Extend(Kind kind, const ValueList& more) {
    const PickleValue& target = Top();
    const bool is_dict = kind == Kind::kDict;
    if ((target.kind != kind && target.kind != Kind::kCall) || (is_dict && more.size() % 2 != 0))
      RefuseFile("values are put into what cannot hold them");
    if (!is_dict && target.kind == Kind::kCall) return true;
    ValueList& items = ItemsOf(target);
    items.insert(items.end(), more.begin(), more.end());
    return true;
  }

  bool Put(uint32_t place) {
    memo_[place] = Top();
    return true;
  }
  bool Get(uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) RefuseFile("value {} was not stored before", place);
    return Push(found->second);
  }

  // ---- Calls

  bool Call(ValueList call) {
    const Kind callee = call[0].kind;
    if ((callee != Kind::kName && callee != Kind::kCall && callee != Kind::kReference) ||
        call[1].kind != Kind::kTuple)
      RefuseFile("a call of what is not a name");
    if (call[0].text == kOrderedDict) return Push(Kind::kDict, DictItems(call[1]));
    call.resize(kOfCall);
    return Push(Kind::kCall, std::move(call));
  }
  // OrderedDict() or, by Python 2, OrderedDict([[key, value], ...]). The list is used up: dicts
  // that share one would grow with the square of the file.
  ValueList DictItems(const PickleValue& arguments) {
    const ValueList& given = ItemsOf(arguments);
    if (given.empty()) return {};
    if (given.size() != 1 || given[0].kind != Kind::kList ||
        !used_lists_.insert(given[0].number).second)
      RefuseFile("an OrderedDict of other arguments than a list of its own");
    ValueList items;
    for (const PickleValue& pair : std::exchange(ItemsOf(given[0]), {})) {
      if ((pair.kind != Kind::kTuple && pair.kind != Kind::kList) || ItemsOf(pair).size() != 2)
        RefuseFile("an OrderedDict of values that are not pairs");
      items.insert(items.end(), ItemsOf(pair).begin(), ItemsOf(pair).end());
    }
    return items;
  }
  bool Build() {
    const PickleValue state = Pop(), &target = Top();
    if (target.kind == Kind::kDict) return true;  // attributes, such as the versions of modules
    if (target.kind != Kind::kCall) RefuseFile("a state is set of what has none");
    ItemsOf(target)[kOfCall - 1] = state;
    return true;
  }

  const std::string_view bytes_;
  size_t at_, opcode_at_ = 0;
  size_t pushed_ = 0;  // values, in all
  ValueList stack_;
  std::vector<size_t> marks_;
  std::map<uint32_t, PickleValue> memo_;
  std::set<int64_t> used_lists_;
  Pickle pickle_;
};

}  // namespace

std::span<const PickleValue> Pickle::Items(const PickleValue& value) const {
  switch (value.kind) {
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kDict:
    case Kind::kReference:
      return items[static_cast<size_t>(value.number)];
    case Kind::kCall:
      return std::span(items[static_cast<size_t>(value.number)]).first(kOfCall);
    default:
      return {};
  }
}

std::span<const PickleValue> Pickle::DictItems(const PickleValue& value) const {
  if (value.kind == Kind::kDict) return Items(value);
  if (value.kind != Kind::kCall) return {};
  return std::span(items[static_cast<size_t>(value.number)]).subspan(kOfCall);
}

Pickle ReadPickle(std::string_view bytes, size_t at) {
  return Machine(bytes, at).Run();
}

}  // namespace mxtrain
