// SPDX-License-Identifier: Apache-2.0
// What is suggested for a path to nothing.
#include "app/config/near_file.h"

#include <doctest/doctest.h>

#include "mxtrain/base/format.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::config {

TEST_CASE("files: endings that all share make no two names alike, and data is no configuration") {
  const test::TempDir dir;
  for (const char* name : {"cards.yaml", "photos.yaml", "houses.csv"}) dir.Write(name, "");
  const auto suggests = [&dir](const std::string& written, const std::string& meant,
                               NearFiles wanted = NearFiles::kAny) {
    CAPTURE(written);
    CHECK(DidYouMeanFile(dir.path(written), wanted) ==
          (meant.empty() ? "" : format("; did you mean '{}'?", dir.path(meant))));
  };
  suggests("chats.yaml", "");
  suggests("card.yaml", "cards.yaml");
  suggests("cadrs.yaml", "cards.yaml");
  suggests("cards.yml", "cards.yaml");
  suggests("chats.yml", "");
  suggests("photos", "photos.yaml");
  suggests("photos", "", NearFiles::kData);
  suggests("photso.yaml", "photos.yaml", NearFiles::kData);
  suggests("house.csv", "houses.csv", NearFiles::kData);
  suggests("house", "houses.csv", NearFiles::kData);
}

}  // namespace mxtrain::config
