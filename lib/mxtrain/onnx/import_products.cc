// SPDX-License-Identifier: Apache-2.0
// Matrix products and sums of products.
#include <algorithm>
#include <cctype>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/import_parts.h"

namespace mxtrain::onnx {
namespace {

// A two-dimensional array of the file.
const Tensor* MatrixOfFile(const ImportNode& node, int i) {
  if (!node.is_array(i) || node.array(i).dims.size() != 2) return nullptr;
  const Tensor& matrix = node.array(i);
  if (matrix.Size() == 0) node.Refuse("its weight {} has no elements", ShapeOf(matrix).ToString());
  return &matrix;
}

// As numpy.matmul: vectors are rows on the left and columns on the right.
void AnyProduct(ImportNode& node) {
  std::string factors[2];
  Shapes to[2];
  for (int i = 0; i < 2; ++i) {
    factors[i] = node.ref(i);
    to[i] = node.ShapesOf(factors[i]);
    if (node.ndim(i) == 0) Throw(ErrorKind::kData, "{}: a factor has no axes", node.Describe());
    if (node.ndim(i) > 1) continue;
    for (TShape& shape : to[i]) shape = i == 0 ? TShape{1, shape[0]} : TShape{shape[0], 1};
    factors[i] = node.Reshape(factors[i], to[i]);
  }
  const std::string product = MatrixProduct(node, factors[0], factors[1]);
  Shapes result = node.ShapesOf(product);
  for (TShape& shape : result) {
    std::vector<int64_t> dims(shape.begin(), shape.end());
    if (node.ndim(1) == 1) dims.pop_back();
    if (node.ndim(0) == 1) dims.erase(dims.end() - (node.ndim(1) == 1 ? 1 : 2));
    shape = dims.empty() ? TShape::OfRank(0) : TShape(std::span<const int64_t>(dims));
  }
  node.OutIs(node.Reshape(product, result));
}

void MatMul(ImportNode& node) {
  const int ndim = node.ndim(0);
  const Tensor *a = MatrixOfFile(node, 0), *b = MatrixOfFile(node, 1);
  if (b && (ndim > 2 || (ndim == 2 && !node.is_array(0)))) {
    node.NameAfter(node.in(1).array);
    return node.Out("FullyConnected", {node.ref(0)},
                    {{"num_hidden", params::Print(b->dims[1])},
                     {"no_bias", "True"},
                     {"flatten", ndim == 2 ? "True" : "False"}},
                    {node.ArgumentOf(1, "weight", Transposed(*b), "transposed")});
  }
  if (a && node.ndim(1) > 2) {
    // A matrix times many: the transposed factors the other way round.
    const int last = node.ndim(1) - 1;
    const Kwargs swapped{{"dim1", params::Print(last - 1)}, {"dim2", params::Print(last)}};
    const std::string columns = node.Add("SwapAxis", {node.ref(1)}, swapped);
    const std::string product = node.Add(
        "FullyConnected", {columns},
        {{"num_hidden", params::Print(a->dims[0])}, {"no_bias", "True"}, {"flatten", "False"}},
        {node.ArgumentOf(0, "weight")});
    return node.Out("SwapAxis", {product}, swapped);
  }
  AnyProduct(node);
}

// --- Einsum ---

// A value and a letter for each of its axes.
struct Term {
  std::string value, letters;
};
struct Equation {
  std::vector<std::string> factors;
  std::string result;
};

bool Has(const std::string& letters, char c) {
  return letters.find(c) != std::string::npos;
}

// The axes of "..." get digits, counted from the last one.
std::string WithoutEllipsis(const ImportNode& node, std::string term, size_t count) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  std::string digits;
  for (size_t i = count; i-- > 0;) digits += static_cast<char>('0' + i);
  term.replace(at, 3, digits);
  if (Has(term, '.')) Throw(ErrorKind::kData, "{}: a term has two ellipses", node.Describe());
  return term;
}

// Without an arrow the result has the axes of "..." and every letter that occurs once, in order.
std::string ImpliedResult(const std::vector<std::string>& terms) {
  std::string all, once;
  for (const std::string& term : terms) all += term;
  for (const char c : all) {
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (letter && std::ranges::count(all, c) == 1) once += c;
  }
  std::ranges::sort(once);
  return (Has(all, '.') ? "..." : "") + once;
}

Equation EquationOf(const ImportNode& node) {
  std::string text;
  for (const char c : node.Word("equation", "")) {
    if (c != ' ') text += c;
  }
  const size_t arrow = text.find("->");
  Equation e;
  std::string term;
  for (const char c : text.substr(0, arrow) + ",") {
    if (c == ',') e.factors.push_back(std::exchange(term, ""));
    if (c != ',') term += c;
  }
  if (static_cast<int>(e.factors.size()) != node.num_inputs())
    Throw(ErrorKind::kData, "{}: its equation '{}' does not have its {} factors", node.Describe(),
          text, node.num_inputs());
  e.result = arrow == std::string::npos ? ImpliedResult(e.factors) : text.substr(arrow + 2);
  size_t most = 0;
  for (size_t i = 0; i < e.factors.size(); ++i) {
    for (const char c : e.factors[i] + e.result) {
      if (c != '.' && std::isalpha(static_cast<unsigned char>(c)) == 0)
        Throw(ErrorKind::kData, "{}: its equation '{}' has a '{}'", node.Describe(), text, c);
    }
    const size_t named = e.factors[i].size() - (Has(e.factors[i], '.') ? 3 : 0);
    const auto ndim = static_cast<size_t>(node.ndim(static_cast<int>(i)));
    const bool fits = Has(e.factors[i], '.') ? named <= ndim : named == ndim;
    if (!fits)
      Throw(ErrorKind::kData, "{}: '{}' stands for {}", node.Describe(), e.factors[i],
            node.shape(static_cast<int>(i)).ToString());
    most = std::max(most, ndim - named);
    e.factors[i] = WithoutEllipsis(node, e.factors[i], ndim - named);
  }
  e.result = WithoutEllipsis(node, e.result, most);
  std::string all;
  for (const std::string& factor : e.factors) all += factor;
  for (const char c : e.result) {
    if (!Has(all, c)) Throw(ErrorKind::kData, "{}: no factor has the axis {}", node.Describe(), c);
    if (std::ranges::count(e.result, c) > 1) node.Refuse("its result has the axis {} twice", c);
  }
  return e;
}

// Of two axes with one letter the diagonal, at the end.
Term WithoutRepeats(ImportNode& node, Term term) {
  for (size_t i = 0; i < term.letters.size(); ++i) {
    const size_t other = term.letters.find(term.letters[i], i + 1);
    if (other == std::string::npos) continue;
    const char letter = term.letters[i];
    term.value = node.Add("diag", {term.value},
                          {{"axis1", format("{}", i)}, {"axis2", format("{}", other)}});
    term.letters.erase(other, 1);
    term.letters.erase(i, 1);
    term.letters += letter;
    i = static_cast<size_t>(-1);
  }
  return term;
}

// Axes that are not needed are summed over.
Term SummedTo(ImportNode& node, const Term& term, const std::string& needed) {
  std::vector<int64_t> axes;
  std::string left;
  for (size_t i = 0; i < term.letters.size(); ++i) {
    if (Has(needed, term.letters[i])) {
      left += term.letters[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  return {Reduced(node, "sum", term.value, axes, false), left};
}

// In the order of `letters`.
std::string InOrderOf(ImportNode& node, const Term& term, const std::string& letters) {
  std::vector<int64_t> order;
  for (const char c : letters) order.push_back(static_cast<int64_t>(term.letters.find(c)));
  return Permuted(node, term.value, order);
}

// The lengths of every letter, for both sizes of the batch.
using LengthsByLetter = std::map<char, std::array<int64_t, 2>>;

Shapes ShapesOfGroups(const std::vector<std::string>& groups, const LengthsByLetter& lengths) {
  Shapes shapes;
  for (size_t batch = 0; batch < 2; ++batch) {
    shapes[batch] = TShape::OfRank(static_cast<int>(groups.size()));
    for (size_t i = 0; i < groups.size(); ++i) {
      int64_t product = 1;
      for (const char c : groups[i]) product *= lengths.at(c)[batch];
      shapes[batch][static_cast<int>(i)] = product;
    }
  }
  return shapes;
}

// Without axes of length 1 whose letter stands for more elsewhere.
Term WithoutOnes(ImportNode& node, Term term, const LengthsByLetter& lengths) {
  Shapes to = node.ShapesOf(term.value);
  const Shapes from = to;
  std::string left;
  for (size_t batch = 0; batch < 2; ++batch) {
    std::vector<int64_t> dims;
    left.clear();
    for (size_t i = 0; i < term.letters.size(); ++i) {
      const int axis = static_cast<int>(i);
      const std::array<int64_t, 2>& length = lengths.at(term.letters[i]);
      if (from[0][axis] == 1 && from[1][axis] == 1 && (length[0] != 1 || length[1] != 1)) continue;
      left += term.letters[i];
      dims.push_back(from[batch][axis]);
      if (from[batch][axis] != length[batch])
        node.Refuse("the axis {} has two lengths", term.letters[i]);
    }
    to[batch] = dims.empty() ? TShape::OfRank(0) : TShape(std::span<const int64_t>(dims));
  }
  return {node.Reshape(term.value, to), left};
}

// A batch of matrix products: axes that both have and are needed are the batch, those that only
// both have are summed over.
Term ProductOf(ImportNode& node, const Term& first, const Term& second, const std::string& needed,
               const LengthsByLetter& lengths) {
  const Term a = SummedTo(node, first, needed + second.letters),
             b = SummedTo(node, second, needed + first.letters);
  std::string batch, summed, rows, columns;
  for (const char c : a.letters) {
    std::string& group = !Has(b.letters, c) ? rows : Has(needed, c) ? batch : summed;
    group += c;
  }
  for (const char c : b.letters) {
    if (!Has(a.letters, c)) columns += c;
  }
  const std::string left = node.Reshape(InOrderOf(node, a, batch + rows + summed),
                                        ShapesOfGroups({batch, rows, summed}, lengths)),
                    right = node.Reshape(InOrderOf(node, b, batch + summed + columns),
                                         ShapesOfGroups({batch, summed, columns}, lengths));
  const std::string letters = batch + rows + columns;
  if (letters.size() > static_cast<size_t>(TShape::kMaxDims))
    node.Refuse("a product of two of its factors has {} axes", letters.size());
  std::vector<std::string> apart;
  for (const char c : letters) apart.emplace_back(1, c);
  const std::string product = node.Add("batch_dot", {left, right});
  return {node.Reshape(product, ShapesOfGroups(apart, lengths)), letters};
}

void Einsum(ImportNode& node) {
  const Equation e = EquationOf(node);
  std::vector<Term> terms;
  LengthsByLetter lengths;
  for (size_t i = 0; i < e.factors.size(); ++i) {
    terms.push_back(WithoutRepeats(node, {node.ref(static_cast<int>(i)), e.factors[i]}));
    const Shapes& shapes = node.ShapesOf(terms.back().value);
    for (size_t axis = 0; axis < terms.back().letters.size(); ++axis) {
      std::array<int64_t, 2>& length =
          lengths.try_emplace(terms.back().letters[axis], std::array<int64_t, 2>{1, 1})
              .first->second;
      for (size_t batch = 0; batch < 2; ++batch)
        length[batch] = std::max(length[batch], shapes[batch][static_cast<int>(axis)]);
    }
  }
  Term result = WithoutOnes(node, terms[0], lengths);
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string needed = e.result;
    for (size_t later = i + 1; later < terms.size(); ++later) needed += terms[later].letters;
    result = ProductOf(node, result, WithoutOnes(node, terms[i], lengths), needed, lengths);
  }
  result = SummedTo(node, result, e.result);
  for (const char c : e.result) {
    if (!Has(result.letters, c)) node.Refuse("the axis {} has two lengths", c);
  }
  node.OutIs(InOrderOf(node, result, e.result));
}

}  // namespace

std::vector<ImportEntry> ProductImports() {
  return {{"MatMul", MatMul}, {"Einsum", Einsum}};
}

}  // namespace mxtrain::onnx
