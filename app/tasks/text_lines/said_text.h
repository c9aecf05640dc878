// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts of what ctc_greedy_decoder gives for an example.
#include <span>
#include <string>
#include <vector>

namespace mxtrain::tasks {

struct SaidText {
  std::vector<std::string> letters;  // with those that have no name as U+FFFD
  // The product of the probabilities of its letters; 1 of none.
  double probability = 1;

  std::string text() const {
    std::string all;
    for (const std::string& letter : letters) all += letter;
    return all;
  }
};

// `rows`: [steps, 2], a class and its probability each. `alphabet`: the letter of class 1, 2, ...
inline SaidText ReadSaidText(std::span<const float> rows,
                             const std::vector<std::string>& alphabet) {
  SaidText said;
  for (size_t i = 0; i + 1 < rows.size() && rows[i] >= 0; i += 2) {
    const auto letter = static_cast<size_t>(rows[i]);
    const bool named = letter >= 1 && letter <= alphabet.size();
    said.letters.push_back(named ? alphabet[letter - 1] : "\xef\xbf\xbd");
    said.probability *= static_cast<double>(rows[i + 1]);
  }
  return said;
}

// The text of a label: classes from 1, and 0 after the last one.
inline std::vector<std::string> LettersOfLabel(std::span<const float> label,
                                               const std::vector<std::string>& alphabet) {
  std::vector<std::string> letters;
  for (const float value : label) {
    if (!(value >= 1)) break;
    const auto letter = static_cast<size_t>(value);
    letters.push_back(letter <= alphabet.size() ? alphabet[letter - 1] : "\xef\xbf\xbd");
  }
  return letters;
}

}  // namespace mxtrain::tasks
