// A text store of a few texts in a temporary folder.
#pragma once

#include <vector>

#include "infer/drafters/text_store.h"
#include "tests/base/temp_folder.h"

namespace medusa::fixtures {

class TextStoreFile {
 public:
  explicit TextStoreFile(const std::vector<std::vector<TokenId>>& texts)
      : store_(write(folder_ / "store", texts)) {}

  const TextStore& store() const { return store_; }

  static std::filesystem::path write(const std::filesystem::path& file,
                                     const std::vector<std::vector<TokenId>>& texts) {
    TextStoreWriter writer;
    for (const auto& text : texts) writer.add(text);
    writer.write(file, {"sha256:aa", "sha256:bb", "training"});
    return file;
  }

 private:
  TempFolder folder_;
  TextStore store_;
};

}  // namespace medusa::fixtures
