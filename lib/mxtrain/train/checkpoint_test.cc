// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/checkpoint.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "tests/support/allocation_count.h"
#include "tests/support/temp_dir.h"

namespace mxtrain {
namespace {

struct CheckpointFiles {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  test::TempDir folder;

  Checkpoint Make(int64_t step) {
    Checkpoint c;
    c.model.symbol_json = "{}";
    c.model.class_names = {"cat", "dog"};
    c.model.train_data = "7 records, 0123";
    c.model.kernel_choices = {{"convolution, forward: data 64x1x28x28; a GPU", "winograd, fma"},
                              {"another", "gemm"}};
    c.state.step = step;
    c.state.random_calls = 21;
    c.state.best = {{"accuracy", 0.1, 3}, {"loss", 1.0 / 3, 2}};
    c.state.best[0].loss = 2.0 / 3;
    c.args["w"] = NDArray::FromVector(runtime, TShape{2}, {1.5f, static_cast<float>(step)});
    c.auxs["mean"] = NDArray::FromVector(runtime, TShape{1}, {2});
    c.optimizer["w/0"] = NDArray::FromVector(runtime, TShape{2}, {3, 4});
    return c;
  }
};

TEST_CASE_FIXTURE(CheckpointFiles, "what was saved is loaded") {
  SaveCheckpoint(folder.path("c"), Make(7));
  const Checkpoint c = LoadCheckpoint(runtime, folder.path("c"));
  CHECK(c.model.class_names == std::vector<std::string>{"cat", "dog"});
  CHECK(c.model.train_data == "7 records, 0123");
  CHECK(c.model.val_data.empty());
  CHECK(c.model.kernel_choices == Make(7).model.kernel_choices);
  CHECK(PeekModel(folder.path("c")).kernel_choices == c.model.kernel_choices);
  CHECK(c.state.step == 7);
  CHECK(c.state.random_calls == 21);
  REQUIRE(c.state.best.size() == 2);
  CHECK(c.state.best[0].value == 0.1);
  CHECK(c.state.best[0].loss == 2.0 / 3);
  CHECK(c.state.best[1].loss == std::nullopt);
  CHECK(c.state.best[1].metric == "loss");
  CHECK(c.state.best[1].value == 1.0 / 3);
  CHECK(c.state.best[1].epoch == 2);
  CHECK(c.args.at("w").ToVector() == std::vector<float>{1.5f, 7});
  CHECK(c.auxs.at("mean").ToVector() == std::vector<float>{2});
  CHECK(c.optimizer.at("w/0").ToVector() == std::vector<float>{3, 4});
  CHECK(PeekState(folder.path("c")).step == 7);
}

TEST_CASE_FIXTURE(CheckpointFiles, "a file from before kernel choices is read") {
  Checkpoint c = Make(7);
  c.model.kernel_choices.clear();
  SaveCheckpoint(folder.path("c"), c);
  std::string bytes = ReadFile(folder.path("c"));
  const std::string field = ",\"kernel_choices\":{}";
  const size_t at = bytes.find(field);
  REQUIRE(at != std::string::npos);
  bytes.erase(at, field.size());
  const auto put = [&bytes](size_t to, uint64_t value) {
    std::memcpy(bytes.data() + to, &value, sizeof value);
  };
  uint64_t header;
  std::memcpy(&header, bytes.data() + 8, sizeof header);
  put(8, header - field.size());
  put(bytes.size() - 8, Checksum(bytes.substr(0, bytes.size() - 8)));
  folder.Write("older", bytes);
  CHECK(LoadCheckpoint(runtime, folder.path("older")).model.kernel_choices.empty());
  CHECK(LoadCheckpoint(runtime, folder.path("older")).state.step == 7);
}

TEST_CASE_FIXTURE(CheckpointFiles,
                  "every truncation and every changed byte is reported as damage") {
  SaveCheckpoint(folder.path("c"), Make(7));
  const std::string whole = ReadFile(folder.path("c"));
  const auto rejected = [&](const std::string& bytes) {
    folder.Write("damaged", bytes);
    try {
      LoadCheckpoint(runtime, folder.path("damaged"));
      return false;
    } catch (const Error& e) {
      return e.kind() == ErrorKind::kData;
    }
  };
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK_MESSAGE(rejected(whole.substr(0, size)), "truncated to " << size);
  for (size_t at = 0; at < whole.size(); at += 3) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    CHECK_MESSAGE(rejected(bytes), "changed at " << at);
  }
}

// The checkpoint with other arrays, or with part of its header changed, and a matching checksum.
struct Forgery {
  std::string header, arrays;

  explicit Forgery(const std::string& bytes) {
    uint64_t size;
    std::memcpy(&size, bytes.data() + 8, sizeof size);
    header = bytes.substr(16, size);
    arrays = bytes.substr(24 + size, bytes.size() - 32 - size);
  }
  std::string Bytes() const {
    const auto number = [](uint64_t value) {
      return std::string(reinterpret_cast<const char*>(&value), sizeof value);
    };
    const std::string body =
        "MXTRAIN1" + number(header.size()) + header + number(arrays.size()) + arrays;
    return body + number(Checksum(body));
  }
  Forgery& Replace(const std::string& what, const std::string& by) {
    REQUIRE(header.find(what) != std::string::npos);
    header.replace(header.find(what), what.size(), by);
    return *this;
  }
  Forgery& SetArrays(const NamedArrays& other) {
    arrays = SerializeArrays(other);
    return *this;
  }
};

TEST_CASE_FIXTURE(CheckpointFiles, "invalid contents are damage, whatever the checksum says") {
  SaveCheckpoint(folder.path("c"), Make(7));
  const Forgery whole(ReadFile(folder.path("c")));
  const NDArray array = NDArray::Zeros(runtime, TShape{2});
  const auto why = [&](const Forgery& forgery) -> std::string {
    folder.Write("forged", forgery.Bytes());
    try {
      LoadCheckpoint(runtime, folder.path("forged"));
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::kData);
      return std::string(e.what()).substr(folder.path("forged").size());
    }
    return "";
  };
  CHECK(why(whole) == "");
  CHECK(why(Forgery(whole).SetArrays({{}, {array}})) ==
        " is not a complete checkpoint: its 1 arrays have no names");
  CHECK(why(Forgery(whole).SetArrays({{"w"}, {array}})) ==
        " is not a complete checkpoint: the array 'w' is neither arg:, aux:, opt:, avg:, res: nor "
        "car:");
  CHECK(why(Forgery(whole).SetArrays({{"net:w"}, {array}})) ==
        " is not a complete checkpoint: the array 'net:w' is neither arg:, aux:, opt:, avg:, res: "
        "nor "
        "car:");
  CHECK(why(Forgery(whole).SetArrays({{"arg:w"}, {NDArray()}})) ==
        " is not a complete checkpoint: the array 'arg:w' has no shape");
  CHECK(why(Forgery(whole).SetArrays({{"arg:w", "arg:w"}, {array, array}})) ==
        " is not a complete checkpoint: the array 'arg:w' appears twice");
  const std::string input = "\"inputs\":[";
  CHECK(why(Forgery(whole).Replace(
                input, input + R"({"name":"x","shape":[1,1,1,1,1,1,1,1,1],"type":"float32"})"))
            .find("at most 8 dimensions") != std::string::npos);
  CHECK(why(Forgery(whole).Replace(input, input + R"({"name":"x","shape":[1],"type":"float31"})"))
            .find("'float31' is not an element type") != std::string::npos);
  CHECK(why(Forgery(whole).Replace(
                input,
                input + R"({"name":"x","shape":[1099511627776,1099511627776],"type":"uint8"})"))
            .find("has too many elements") != std::string::npos);
  CHECK(why(Forgery(whole).Replace(input, input + R"({"name":"x","shape":[-3],"type":"uint8"})"))
            .find("the shape of 'x' is [?]") != std::string::npos);
  CHECK(why(Forgery(whole).Replace("\"step\":7", "\"step\":-7"))
            .find("\"step\" is -7, not a number from 0 to 9007199254740992") != std::string::npos);
}

// Counts near 2^63 once overflowed, as in the step after this one.
TEST_CASE_FIXTURE(CheckpointFiles, "counts of no possible run are damage, and named") {
  Checkpoint c = Make(7);
  c.model.batch_size = 32;
  c.state.batches_per_step = 2;
  c.state.loss_scale = LossScaleState();
  SaveCheckpoint(folder.path("c"), c);
  const Forgery whole(ReadFile(folder.path("c")));
  const auto why = [&](const std::string& field, const std::string& old,
                       const std::string& value) -> std::string {
    folder.Write("forged",
                 Forgery(whole)
                     .Replace(format("\"{}\":{}", field, old), format("\"{}\":{}", field, value))
                     .Bytes());
    try {
      LoadCheckpoint(runtime, folder.path("forged"));
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::kData);
      return e.what();
    }
    return "";
  };
  const auto zeros = {"epoch",          "step_in_epoch",     "first_epoch",     "first_step",
                      "total_steps",    "examples_in_epoch", "average_updates", "good_steps",
                      "steps_left_out", "at_lowest"};
  std::vector<std::pair<std::string, std::string>> fields = {
      {"step", "7"}, {"batch_size", "32"}, {"batches_per_step", "2"}};
  for (const char* zero : zeros) fields.emplace_back(zero, "0");
  for (const auto& entry : fields) {
    const std::string &field = entry.first, &old = entry.second;
    CAPTURE(field);
    CHECK(why(field, old, old) == "");
    for (const char* value : {"9223372036854775806", "18446744073709551615", "9007199254740993",
                              "-1", "1e300", "\"1\"", "null"}) {
      CAPTURE(value);
      CHECK(why(field, old, value)
                .find(format("\"{}\" is {}, not a number from 0 to", field,
                             value == std::string("1e300") ? "1e+300" : value)) !=
            std::string::npos);
    }
  }
  CHECK(why("step_in_epoch", "0", "140737488355328") == "");  // 2^47 steps of 64 examples
  CHECK(why("step_in_epoch", "0", "140737488355329")
            .find("\"step_in_epoch\" is 140737488355329, too many for steps of 64 examples") !=
        std::string::npos);
  CHECK(why("first_step", "0", "8").find("\"first_step\" is 8, not a number from 0 to 7") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(CheckpointFiles, "a file goes through memory in pieces, written and read") {
  Checkpoint c = Make(7);
  c.args["large"] = NDArray::Zeros(runtime, TShape{1 << 22, 8}, DType::kFloat16);  // 64 MiB
  c.args["large"].WaitToRead();
  const auto peak = [](const auto& work) {
    test::PeakBytes bytes;
    work();
    return bytes.value() >> 20;
  };
  const std::string path = folder.path("large");
  CHECK(peak([&] { SaveCheckpoint(path, c); }) < 8);
  CHECK(peak([&] { PeekModel(path); }) < 1);
  CHECK(peak([&] { PeekState(path); }) < 8);
  // The arrays are in the storage's memory, which operator new does not see.
  const int64_t before = runtime.storage().GetStats(Context::cpu()).in_use;
  CHECK(peak([&] {
          CHECK(LoadCheckpoint(runtime, path).args.at("large").shape() == TShape{1 << 22, 8});
        }) < 8);
  CHECK(runtime.storage().GetStats(Context::cpu()).peak <= before + (72 << 20));
}

TEST_CASE_FIXTURE(CheckpointFiles, "a run continues from another checkpoint if `last` was forged") {
  const CheckpointFolder checkpoints(folder.path("checkpoints"));
  for (int64_t step : {1, 2}) checkpoints.Save(Make(step), {}, 0);
  folder.Write("checkpoints/last", Forgery(ReadFile(checkpoints.File("last")))
                                       .SetArrays({{}, {NDArray::Zeros(runtime, TShape{2})}})
                                       .Bytes());
  std::vector<std::string> warnings;
  CHECK(checkpoints.LoadLast(runtime, &warnings).state.step == 1);
  CHECK(warnings.size() == 2);
}

TEST_CASE_FIXTURE(CheckpointFiles,
                  "the newest epochs are kept, also when their numbers get longer") {
  const CheckpointFolder checkpoints(folder.path("run"));
  for (int64_t epoch : {9998, 9999, 10000, 10001})
    checkpoints.Save(Make(epoch), {format("epoch-{:04}", epoch)}, 2);
  CHECK_FALSE(std::filesystem::exists(checkpoints.File("epoch-9999")));
  CHECK(std::filesystem::exists(checkpoints.File("epoch-10000")));
  CHECK(std::filesystem::exists(checkpoints.File("epoch-10001")));
}

TEST_CASE_FIXTURE(
    CheckpointFiles,
    "a damaged `last` falls back to the previous one, with a warning; no intact one is an error") {
  const CheckpointFolder checkpoints(folder.path("checkpoints"));
  for (int64_t step : {1, 2, 3})
    checkpoints.Save(Make(step), {format("epoch-{:04}", step)}, /*keep=*/2);
  CHECK_FALSE(std::filesystem::exists(checkpoints.File("epoch-0001")));
  CHECK(std::filesystem::exists(checkpoints.File("epoch-0002")));
  std::vector<std::string> warnings;
  CHECK(checkpoints.LoadLast(runtime, &warnings).state.step == 3);
  CHECK(warnings.empty());
  std::filesystem::remove(checkpoints.File("epoch-0003"));
  Checkpoint other = Make(2);
  other.model.kernel_choices = {{"of epoch 2", "direct"}};
  CHECK(checkpoints.PeekLast().kernel_choices == Make(3).model.kernel_choices);
  for (const char* name : {"previous", "epoch-0002"}) SaveCheckpoint(checkpoints.File(name), other);
  folder.Write("checkpoints/last", ReadFile(checkpoints.File("last")).substr(0, 100));
  CHECK(checkpoints.PeekLast().kernel_choices == other.model.kernel_choices);
  CHECK(checkpoints.LoadLast(runtime, &warnings).state.step == 2);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[1].find("is missing or damaged") != std::string::npos);
  for (const char* name : {"previous", "epoch-0002"})
    folder.Write(format("checkpoints/{}", name), "nothing");
  CHECK_THROWS_WITH(checkpoints.LoadLast(runtime, &warnings),
                    doctest::Contains("no complete checkpoint to resume from"));
}

TEST_CASE_FIXTURE(CheckpointFiles, "`last` exists at every moment, for readers during training") {
  const CheckpointFolder checkpoints(folder.path("checkpoints"));
  checkpoints.Save(Make(0), {}, 0);
  std::atomic<bool> end = false;
  std::atomic<int64_t> looks = 0, missed = 0;
  std::thread reader([&] {
    for (; !end; ++looks) missed += std::filesystem::exists(checkpoints.File("last")) ? 0 : 1;
  });
  for (int64_t step = 1; step <= 200 || looks < 1000; ++step)
    checkpoints.Save(Make(step), {"best"}, 0);
  end = true;
  reader.join();
  CHECK(missed == 0);
}

TEST_CASE_FIXTURE(CheckpointFiles,
                  "a `last` that cannot be read is not damaged: the reason is reported") {
  const CheckpointFolder checkpoints(folder.path("checkpoints"));
  for (int64_t step : {1, 2}) checkpoints.Save(Make(step), {}, 0);
  std::filesystem::remove(checkpoints.File("last"));
  // Can be opened but not read, even by root.
  std::filesystem::create_directory(checkpoints.File("last"));
  std::vector<std::string> warnings;
  try {
    checkpoints.LoadLast(runtime, &warnings);
    FAIL("an older checkpoint was taken");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::kFileSystem);
  }
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(CheckpointFiles,
                  "a path that is not UTF-8 does not keep a checkpoint from being written") {
  Checkpoint c = Make(1);
  c.model.config = "path: /photos/caf\xe9";
  SaveCheckpoint(folder.path("c"), c);
  CHECK(LoadCheckpoint(runtime, folder.path("c")).model.config == "path: /photos/caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace mxtrain
