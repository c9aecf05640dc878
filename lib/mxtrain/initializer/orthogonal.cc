// SPDX-License-Identifier: Apache-2.0
// Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep
// linear neural networks", arXiv 1312.6120.
#include <cmath>

#include "mxtrain/base/philox.h"
#include "mxtrain/initializer/internal/initializers.h"

namespace mxtrain {
namespace {

struct OrthogonalParam : Parameter<OrthogonalParam> {
  double scale;
  static void Declare(Fields<OrthogonalParam>& f) {
    f.Add("scale", &OrthogonalParam::scale)
        .Default(std::sqrt(2.0))
        .Range(0)
        .Help("norm of each row or column; sqrt(2) suits ReLU");
  }
};

using Row = std::vector<double>;

double Dot(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Orthonormal rows, at most as many as a row is long: normal numbers by Gram-Schmidt. Each row is
// subtracted twice, since once leaves rounding errors that grow with the number of rows.
std::vector<Row> OrthogonalRows(int64_t count, int64_t length, uint64_t seed, uint64_t stream) {
  std::vector<Row> rows;
  for (int64_t r = 0; r < count; ++r) {
    Row row;
    for (int64_t i = 0; i < length; ++i)
      row.push_back(
          static_cast<double>(NormalAt(seed, stream, 0, static_cast<uint64_t>(r * length + i))));
    for (int pass = 0; pass < 2; ++pass) {
      for (const Row& before : rows) {
        const double part = Dot(row, before);
        for (size_t i = 0; i < row.size(); ++i) row[i] -= part * before[i];
      }
    }
    const double norm = std::sqrt(Dot(row, row));
    for (double& value : row) value /= norm;
    rows.push_back(std::move(row));
  }
  return rows;
}

// The array viewed as a matrix of shape[0] rows: orthogonal rows, or orthogonal columns if there
// are fewer.
class Orthogonal final : public Initializer {
 public:
  explicit Orthogonal(double scale) : scale_(scale) {}

  void Initialize(const std::string& name, uint64_t seed, NDArray* array) const override {
    const TShape& shape = array->shape();
    if (shape.ndim() < 2) {
      Throw(ErrorKind::kConfig,
            "orthogonal needs an array of two dimensions or more; '{}' has shape {}; declare "
            "another init",
            name, shape.ToString());
    }
    const int64_t height = shape[0], width = shape.Product(1, shape.ndim());
    const bool wide = height <= width;
    auto rows = wide ? OrthogonalRows(height, width, seed, StreamOf(name))
                     : OrthogonalRows(width, height, seed, StreamOf(name));
    InitializeElements(
        name, array, [rows = std::move(rows), wide, width, scale = scale_](int64_t i) {
          const auto y = static_cast<size_t>(i / width), x = static_cast<size_t>(i % width);
          return static_cast<float>(scale * (wide ? rows[y][x] : rows[x][y]));
        });
  }

 private:
  const double scale_;
};

}  // namespace

std::unique_ptr<Initializer> NewOrthogonal(const Kwargs& kwargs) {
  OrthogonalParam param;
  param.Init(kwargs, "initializer orthogonal");
  return std::make_unique<Orthogonal>(param.scale);
}
std::vector<FieldInfo> DescribeOrthogonal() {
  return OrthogonalParam::Describe();
}

}  // namespace mxtrain
