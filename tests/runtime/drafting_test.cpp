#include "runtime/drafting.h"

#include <gtest/gtest.h>

#include "base/fingerprint.h"
#include "tests/base/error_text.h"
#include "tests/base/temp_folder.h"
#include "tools/run/open_model.h"

namespace medusa {
namespace {

TEST(Drafting, AStoreOfAnotherTokenizerIsTheUsersError) {
  const std::filesystem::path gguf = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";
  const fixtures::TempFolder folder;
  const std::string file = (folder / "store").string();
  TextStoreWriter writer;
  writer.add(std::vector<TokenId>{1, 2, 3});
  const std::string other = fingerprint_text("another tokenizer");
  writer.write(file, {other, "", "training"});

  RunConfig config;
  config.backbone.model = gguf.string();
  config.backbone.chat_template = "plain";
  config.generate.infer.drafter = DrafterKind::Retrieval;
  config.generate.infer.retrieval.store = file;
  const Model model = open_model(config.backbone);
  BackboneTarget target(*model.llama, 1, 64);
  const auto load = [&] {
    load_drafting(config.draft_files(), config.generate.infer, model, target);
  };
  const std::string own = model.tokenizer->fingerprint();
  EXPECT_EQ(fixtures::error_text(load),
            file + ": its texts are tokens of tokenizer " + short_fingerprint(other) +
                ", the one in " + gguf.string() + " has " + short_fingerprint(own) +
                "; build the store again with medusa build-store, or give another one with "
                "generate.retrieval.store");
  writer.write(file, {own, "", "training"});
  EXPECT_EQ(fixtures::error_text(load), "(no error)");

  TextStoreWriter above;
  const auto vocab_size = static_cast<TokenId>(model.llama->config().vocab_size);
  above.add(std::vector<TokenId>{1, vocab_size, 3});
  above.write(file, {own, "", "training"});
  EXPECT_NE(fixtures::error_text(load).find("holds token " + std::to_string(vocab_size)),
            std::string::npos);
}

}  // namespace
}  // namespace medusa
