// SPDX-License-Identifier: Apache-2.0
#include "app/config/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "mxtrain/base/format.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kMostNamed = 20;  // in one message

std::string TooLong(size_t bytes) {
  return format("the text grows to {} bytes; expressions may add {}", bytes, kMaxAddedText);
}

bool IsNameStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool IsNamePart(char c) {
  return IsNameStart(c) || std::isdigit(static_cast<unsigned char>(c));
}
bool IsNumber(const Constant& c) {
  return std::holds_alternative<int64_t>(c) || std::holds_alternative<double>(c);
}
double Number(const Constant& c) {
  return std::holds_alternative<int64_t>(c) ? static_cast<double>(std::get<int64_t>(c))
                                            : std::get<double>(c);
}
const char* KindOf(const Constant& c) {
  static constexpr const char* kNames[] = {"a truth value", "an integer", "a number", "a text"};
  return kNames[c.index()];
}

// A parser by recursive descent that evaluates as it reads.
class Parser {
 public:
  Parser(std::string_view text, const Names& names) : text_(text), names_(names) {}

  Constant Run() {
    Constant value = Choice();
    Skip();
    if (at_ < text_.size()) Fail(at_, format("unexpected '{}'", text_[at_]));
    return value;
  }

 private:
  [[noreturn]] void Fail(size_t offset, std::string message, std::string help = "",
                         size_t length = 1) {
    throw ExpressionError{offset, length, std::move(message), std::move(help)};
  }
  void Skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Take(std::string_view token) {
    Skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    const bool word = IsNameStart(token.front());
    if (word && at_ + token.size() < text_.size() && IsNamePart(text_[at_ + token.size()]))
      return false;
    at_ += token.size();
    return true;
  }
  bool Peek(char c) {
    Skip();
    return at_ < text_.size() && text_[at_] == c;
  }

  Constant Choice() {
    if (++depth_ > kMaxDepth) Fail(at_, "the expression is nested too deeply");
    Constant value = Or();
    const size_t start = at_;
    if (Take("?")) {
      const bool condition = Truth(value, start);
      Constant yes = Choice();
      if (!Take(":")) Fail(at_, "expected the ':' of 'condition ? a : b'");
      Constant no = Choice();
      value = condition ? yes : no;
    }
    --depth_;
    return value;
  }
  bool Truth(const Constant& value, size_t offset) {
    if (const bool* truth = std::get_if<bool>(&value)) return *truth;
    if (IsNumber(value)) return Number(value) != 0;
    Fail(offset, "expected a truth value, got a text");
  }
  Constant Or() {
    Constant value = And();
    for (size_t start = at_; Take("or") || Take("||"); start = at_) {
      const bool left = Truth(value, start), right = Truth(And(), at_);
      value = left || right;
    }
    return value;
  }
  Constant And() {
    Constant value = Not();
    for (size_t start = at_; Take("and") || Take("&&"); start = at_) {
      const bool left = Truth(value, start), right = Truth(Not(), at_);
      value = left && right;
    }
    return value;
  }
  Constant Not() {
    Skip();
    const bool bang = at_ + 1 < text_.size() && text_[at_] == '!' && text_[at_ + 1] != '=';
    if (Take("not") || (bang && Take("!"))) {
      if (++depth_ > kMaxDepth) Fail(at_, "the expression is nested too deeply");
      const bool value = Truth(Not(), at_);
      --depth_;
      return !value;
    }
    return Comparison();
  }
  Constant Comparison() {
    Constant left = Sum();
    for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      const size_t start = at_;
      if (!Take(op)) continue;
      const Constant right = Sum();
      return Compare(op, left, right, start);
    }
    return left;
  }
  bool Compare(std::string_view op, const Constant& a, const Constant& b, size_t offset) {
    int order = 0;
    if (IsNumber(a) && IsNumber(b)) {
      order = Number(a) < Number(b) ? -1 : Number(a) > Number(b) ? 1 : 0;
    } else if (a.index() == b.index()) {
      order = a < b ? -1 : b < a ? 1 : 0;
    } else {
      Fail(offset, format("cannot compare {} with {}", KindOf(a), KindOf(b)));
    }
    return op == "=="   ? order == 0
           : op == "!=" ? order != 0
           : op == "<"  ? order < 0
           : op == "<=" ? order <= 0
           : op == ">"  ? order > 0
                        : order >= 0;
  }
  Constant Sum() {
    Constant value = Product();
    for (;;) {
      Skip();
      const size_t start = at_;
      const char op = Take("+") ? '+' : Take("-") ? '-' : '\0';
      if (!op) return value;
      value = Apply(op, value, Product(), start);
    }
  }
  Constant Product() {
    Constant value = Unary();
    for (;;) {
      Skip();
      const size_t start = at_;
      const char op = Take("//") ? 'd' : Take("*") ? '*' : Take("/") ? '/' : Take("%") ? '%' : '\0';
      if (!op) return value;
      value = Apply(op, value, Unary(), start);
    }
  }
  Constant Apply(char op, const Constant& a, const Constant& b, size_t offset) {
    if (op == '+' && std::holds_alternative<std::string>(a) &&
        std::holds_alternative<std::string>(b)) {
      const std::string &left = std::get<std::string>(a), &right = std::get<std::string>(b);
      if (left.size() + right.size() > kMaxAddedText)
        Fail(offset, TooLong(left.size() + right.size()));
      return left + right;
    }
    if (!IsNumber(a) || !IsNumber(b))
      Fail(offset, format("'{}' needs numbers, got {}", op == 'd' ? "//" : std::string(1, op),
                          KindOf(IsNumber(a) ? b : a)));
    if ((op == '/' || op == 'd' || op == '%') && Number(b) == 0) Fail(offset, "division by zero");
    if (std::holds_alternative<double>(a) || std::holds_alternative<double>(b))
      return OnNumbers(op, Number(a), Number(b));
    return OnIntegers(op, std::get<int64_t>(a), std::get<int64_t>(b), offset);
  }
  static Constant OnNumbers(char op, double a, double b) {
    switch (op) {
      case '+':
        return a + b;
      case '-':
        return a - b;
      case '*':
        return a * b;
      case '/':
        return a / b;
      case 'd':
        return std::floor(a / b);
      default:
        return a - b * std::floor(a / b);
    }
  }
  Constant OnIntegers(char op, int64_t a, int64_t b, size_t offset) {
    int64_t result = 0;
    const bool overflow = op == '+'   ? __builtin_add_overflow(a, b, &result)
                          : op == '-' ? __builtin_sub_overflow(a, b, &result)
                          : op == '*' ? __builtin_mul_overflow(a, b, &result)
                                      : a == INT64_MIN && b == -1;
    if (overflow) Fail(offset, "the integer is too large");
    if (op == '/' && a % b != 0) return static_cast<double>(a) / static_cast<double>(b);
    if (op == '/') return a / b;
    const int64_t rest_fix = b != 0 && a % b != 0 && ((a < 0) != (b < 0)) ? 1 : 0;
    if (op == 'd') return a / b - rest_fix;
    if (op == '%') return a % b + rest_fix * b;
    return result;
  }
  Constant Unary() {
    Skip();
    const size_t start = at_;
    if (Take("-")) {
      if (++depth_ > kMaxDepth) Fail(at_, "the expression is nested too deeply");
      Constant value = Apply('-', int64_t{0}, Unary(), start);
      --depth_;
      return value;
    }
    return Primary();
  }
  Constant Primary() {
    Skip();
    const size_t start = at_;
    if (at_ >= text_.size()) Fail(at_, "the expression ends too early");
    if (Take("(")) {
      Constant value = Choice();
      if (!Take(")")) Fail(at_, "expected ')'");
      return value;
    }
    const char c = text_[at_];
    if (c == '\'' || c == '"') return Text(c);
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return Literal();
    if (!IsNameStart(c)) Fail(at_, format("unexpected '{}'", c));
    while (at_ < text_.size() && IsNamePart(text_[at_])) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (name == "true" || name == "True") return true;
    if (name == "false" || name == "False") return false;
    if (Peek('(')) return Call(name, start);
    std::optional<Constant> value = names_.lookup ? names_.lookup(name) : std::nullopt;
    if (value) return *value;
    const std::string reason = names_.without_value ? names_.without_value(name) : "";
    if (!reason.empty()) Fail(start, format("'{}' has no value here", name), reason, name.size());
    Fail(start, format("there is no '{}' here", name), Known(name), name.size());
  }
  std::string Known(std::string_view name) const {
    const std::vector<std::string> known =
        names_.known ? names_.known() : std::vector<std::string>();
    const std::string nearest = Nearest(name, known);
    if (!nearest.empty()) return format("did you mean '{}'?", nearest);
    return known.empty() ? "declare it under 'vars'"
                         : format("known here: {}", FirstOf(known, kMostNamed));
  }
  Constant Text(char quote) {
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) Fail(at_, "the text is never closed");
    std::string text(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return text;
  }
  Constant Literal() {
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    double number = 0;
    const auto [stop, status] = std::from_chars(begin, end, number);
    if (status != std::errc()) Fail(at_, "expected a number");
    at_ = static_cast<size_t>(stop - text_.data());
    int64_t integer = 0;
    if (const auto whole = std::from_chars(begin, stop, integer);
        whole.ec == std::errc() && whole.ptr == stop)
      return integer;
    return number;
  }
  Constant Call(std::string_view name, size_t start) {
    Take("(");
    std::vector<Constant> arguments;
    if (!Take(")")) {
      do arguments.push_back(Choice());
      while (Take(","));
      if (!Take(")")) Fail(at_, "expected ')'");
    }
    return Function(name, arguments, start);
  }
  Constant Function(std::string_view name, const std::vector<Constant>& arguments, size_t start) {
    static const std::vector<std::string> kFunctions = {"min",   "max",  "abs",   "int",
                                                        "floor", "ceil", "round", "sqrt"};
    if (std::find(kFunctions.begin(), kFunctions.end(), name) == kFunctions.end()) {
      Fail(start, format("there is no function '{}'", name),
           format("functions: {}", join(kFunctions, ", ")), name.size());
    }
    const bool extreme = name == "min" || name == "max";
    if (arguments.empty() || (!extreme && arguments.size() != 1)) {
      Fail(start, format("'{}' takes {}", name, extreme ? "at least one value" : "one value"), "",
           name.size());
    }
    for (const Constant& argument : arguments) {
      if (!IsNumber(argument))
        Fail(start, format("'{}' needs numbers, got {}", name, KindOf(argument)), "", name.size());
    }
    if (extreme) {
      auto less = [](const Constant& a, const Constant& b) { return Number(a) < Number(b); };
      return name == "min" ? *std::min_element(arguments.begin(), arguments.end(), less)
                           : *std::max_element(arguments.begin(), arguments.end(), less);
    }
    if (name == "abs")
      return Number(arguments[0]) < 0 ? Apply('-', int64_t{0}, arguments[0], start) : arguments[0];
    const double x = Number(arguments[0]);
    if (name == "sqrt") {
      if (x < 0) Fail(start, "the square root of a negative number", "", name.size());
      return std::sqrt(x);
    }
    if (std::holds_alternative<int64_t>(arguments[0])) return arguments[0];
    const double whole = name == "int"     ? std::trunc(x)
                         : name == "floor" ? std::floor(x)
                         : name == "ceil"  ? std::ceil(x)
                                           : std::round(x);
    if (!(std::abs(whole) < 9e18)) Fail(start, "the integer is too large", "", name.size());
    return static_cast<int64_t>(whole);
  }

  std::string_view text_;
  const Names& names_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Constant Evaluate(std::string_view expression, const Names& names) {
  return Parser(expression, names).Run();
}

std::string ToText(const Constant& constant) {
  if (const bool* truth = std::get_if<bool>(&constant)) return *truth ? "true" : "false";
  if (const int64_t* integer = std::get_if<int64_t>(&constant)) return std::to_string(*integer);
  if (const double* number = std::get_if<double>(&constant)) {
    char buffer[32];
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, *number).ptr);
  }
  return std::get<std::string>(constant);
}

bool IsEnvironmentReference(std::string_view inside) {
  const size_t end = std::min(inside.find(":-"), inside.size());
  const std::string_view name = inside.substr(0, end);
  if (name.empty() || !IsNameStart(name.front()) ||
      !std::all_of(name.begin(), name.end(), IsNamePart))
    return false;
  const bool capitals =
      std::none_of(name.begin(), name.end(), [](unsigned char c) { return std::islower(c); });
  return end < inside.size() || (capitals && name.find_first_not_of('_') != std::string_view::npos);
}

bool IsEscaped(std::string_view text, size_t open) {
  return open > 0 && text[open - 1] == '$';
}

Value Expand(const Value& scalar, const Names& names) {
  if (!scalar.is_scalar() || scalar.text.find("${") == std::string::npos) return scalar;
  const std::string_view text = scalar.text;
  std::string joined;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find("${", at);
    joined += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    if (IsEscaped(text, open)) {
      joined += '{';
      at = open + 2;
      continue;
    }
    const size_t close = text.find('}', open);
    if (close == std::string_view::npos) throw ExpressionError{open, 2, "'${' without its '}'", ""};
    Constant value;
    try {
      value = Evaluate(text.substr(open + 2, close - open - 2), names);
    } catch (ExpressionError& error) {
      error.offset += open + 2;
      throw;
    }
    if (open == 0 && close + 1 == text.size()) {
      Value alone =
          Value::Scalar(ToText(value), scalar.place, std::holds_alternative<std::string>(value));
      if (alone.text.size() > text.size() + kMaxAddedText)
        throw ExpressionError{open, text.size(), TooLong(alone.text.size()), ""};
      return alone;
    }
    joined += ToText(value);
    if (joined.size() > text.size() + kMaxAddedText)
      throw ExpressionError{open, close + 1 - open, TooLong(joined.size()), ""};
    at = close + 1;
  }
  return Value::Scalar(std::move(joined), scalar.place, true);
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.substr(at).starts_with("${")) escaped += '$';
    escaped += text[at];
  }
  return escaped;
}

void Escape(Value* value) {
  for (Value& item : value->list) Escape(&item);
  for (Member& member : value->members) Escape(&member.value);
  if (HasExpression(*value)) value->text = Escaped(value->text);
}

bool HasExpression(const Value& value) {
  return value.is_scalar() && value.text.find("${") != std::string::npos;
}

}  // namespace mxtrain::config
