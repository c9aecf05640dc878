// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/shape.h"

#include <doctest/doctest.h>

#include <vector>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

TEST_CASE("shapes parse in every notation of MXNet") {
  CHECK(TShape::Parse("(2, 3)") == TShape{2, 3});
  CHECK(TShape::Parse("[2,3]") == TShape{2, 3});
  CHECK(TShape::Parse(" ( 2 ,3, ) ") == TShape{2, 3});
  CHECK(TShape::Parse("(2L,)") == TShape{2});
  CHECK(TShape::Parse("5") == TShape{5});
  CHECK(TShape::Parse("5, 6") == TShape{5, 6});
  CHECK(TShape::Parse("(-1, 0)") == TShape{-1, 0});
  CHECK(TShape::Parse("()").ndim() == 0);
  CHECK(TShape::Parse("(1,2,3,4,5,6,7,8)").ndim() == 8);
}

TEST_CASE("invalid shapes are rejected with the reason") {
  CHECK_THROWS_WITH_AS(TShape::Parse(""),
                       "'' is not a shape: a number is missing; write it as (2, 3)", Error);
  CHECK_THROWS_WITH_AS(TShape::Parse("(2, 3"),
                       "'(2, 3' is not a shape: the closing bracket is missing; write it as (2, 3)",
                       Error);
  CHECK_THROWS_WITH_AS(TShape::Parse("(2 3)"),
                       "'(2 3)' is not a shape: the closing bracket is missing; write it as (2, 3)",
                       Error);
  CHECK_THROWS_WITH_AS(TShape::Parse("2x3"),
                       "'2x3' is not a shape: a comma or the end was expected; write it as (2, 3)",
                       Error);
  CHECK_THROWS_WITH_AS(
      TShape::Parse("(2) 3"),
      "'(2) 3' is not a shape: text follows the closing bracket; write it as (2, 3)", Error);
  for (const char* text :
       {"(,)", "[2,3)", "(2,,3)", "(a)", "(", "(99999999999999999999)", "(1,2,3,4,5,6,7,8,9)"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(TShape::Parse(text), Error);
  }
}

TEST_CASE("shapes print and count") {
  CHECK((TShape{32, -1, 28}.ToString()) == "[32, ?, 28]");
  CHECK(TShape().ToString() == "?");
  CHECK((TShape{2, 3}.ToTuple()) == "(2, 3)");
  CHECK(TShape{2}.ToTuple() == "(2,)");
  CHECK(TShape::Parse("()").ToTuple() == "()");
  CHECK(TShape::Parse("()").Size() == 1);
  CHECK((TShape{4, 0, 5}.Size()) == 0);
  CHECK((TShape{4, 0}.known()));
  CHECK_FALSE((TShape{4, -1}.known()));
  CHECK_FALSE(TShape().known());
  CHECK((TShape{2, 3, 4}.Product(1, 3)) == 12);
}

TEST_CASE("partial shapes merge, contradictions leave the target unchanged") {
  TShape into;
  CHECK(MergeShape(TShape::OfRank(2), &into));
  CHECK(MergeShape({-1, 3}, &into));
  CHECK(MergeShape({2, -1}, &into));
  CHECK(into == TShape{2, 3});
  CHECK_FALSE(MergeShape({4, 3}, &into));
  CHECK_FALSE(MergeShape({2, 3, 1}, &into));
  CHECK(into == TShape{2, 3});
  CHECK(MergeShape({}, &into));
  TShape zero = {0, -1};
  CHECK_FALSE(MergeShape({1, 5}, &zero));  // 0 is a size, not an unknown
  CHECK(zero == TShape{0, -1});
}

TEST_CASE("element counts never wrap around") {
  const int64_t half = int64_t{1} << 22, huge = int64_t{1} << 62;
  CHECK(TShape{half, half}.Size() == TShape::kMaxSize);
  CHECK_THROWS_WITH_AS(
      TShape({half, half, 2}).Size(),
      "shape [4194304, 4194304, 2] has too many elements: an array holds at most 2^44", Error);
  CHECK_THROWS_AS(TShape({huge, 4}).Size(), Error);        // 2^64: 0 where it wraps
  CHECK_THROWS_AS(TShape({huge, 2, 3}).Size(), Error);     // negative on the way
  CHECK_THROWS_AS(TShape({0, huge, huge}).Size(), Error);  // a stride of such an array would wrap
  CHECK(TShape({0, half, half}).Size() == 0);
  CHECK(TShape({3, huge, 5}).Product(0, 1) == 3);
  CHECK_THROWS_AS(TShape({3, huge, 5}).Product(1, 3), Error);
}

TEST_CASE("counts of partially known shapes") {
  const TShape shape{2, TShape::kUnknown, 3, 0};
  CHECK(shape.Size() == TShape::kUnknown);
  CHECK(shape.Product(2, 3) == 3);
  CHECK(shape.KnownProduct(0, 3) == 6);
  CHECK(shape.KnownProduct(0, 4) == 0);
  CHECK(TShape().Product(0, -1) == 1);
}

}  // namespace
}  // namespace mxtrain
