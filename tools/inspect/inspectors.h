// One function per kind: the artifact -> its description without "kind" and "path".
// All throw the UserErrors of the kind's reader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tools/inspect/artifact_kind.h"

namespace medusa {

// inspect_models.cpp
nlohmann::ordered_json inspect_gguf(const std::filesystem::path& file);
nlohmann::ordered_json inspect_safetensors(const std::filesystem::path& file);
nlohmann::ordered_json inspect_hugging_face(const std::filesystem::path& folder);

// inspect_training.cpp
nlohmann::ordered_json inspect_prompts(const std::filesystem::path& file);
nlohmann::ordered_json inspect_dataset(const std::filesystem::path& folder);
nlohmann::ordered_json inspect_shard(const std::filesystem::path& file);
nlohmann::ordered_json inspect_heads(const std::filesystem::path& folder);
nlohmann::ordered_json inspect_checkpoint(const std::filesystem::path& folder);
nlohmann::ordered_json inspect_metrics(const std::filesystem::path& file);
nlohmann::ordered_json inspect_events(const std::filesystem::path& file);

// inspect_decoding.cpp
nlohmann::ordered_json inspect_tree(const std::filesystem::path& file);
nlohmann::ordered_json inspect_text_store(const std::filesystem::path& file);
nlohmann::ordered_json inspect_draft_model(const std::filesystem::path& folder);
nlohmann::ordered_json inspect_eagle3(const std::filesystem::path& folder);
nlohmann::ordered_json inspect_layer_choice(const std::filesystem::path& file);
nlohmann::ordered_json inspect_comparison(const std::filesystem::path& file);
nlohmann::ordered_json inspect_bench(const std::filesystem::path& file);
nlohmann::ordered_json inspect_bench_answers(const std::filesystem::path& file);
nlohmann::ordered_json inspect_profile(const std::filesystem::path& file);
nlohmann::ordered_json inspect_settings(const std::filesystem::path& file);

// Files that belong to a folder of ours or of a model and say little by themselves.

/// What such a file is for; null: a folder of this kind has none of this name.
/// @param name  "manifest.yaml".
const char* purpose_of_part(ArtifactKind folder, const std::string& name);

// How many numbers of which format a set of tensors holds.

class TensorTotals {
 public:
  /// @param type  as the file spells it: "Q4_1", "BF16".
  void add(std::string_view type, int64_t num_elements, int64_t bytes);

  int64_t num_tensors() const;
  int64_t num_parameters() const;

  /// Adds "num_tensors", "num_parameters", "tensor_data_bytes", "bits_per_parameter" and the table
  /// "tensors_by_type", largest first.
  void describe(nlohmann::ordered_json& object) const;

 private:
  struct Total {
    int64_t tensors = 0, parameters = 0, bytes = 0;
  };
  std::map<std::string, Total> by_type_;
};

}  // namespace medusa
