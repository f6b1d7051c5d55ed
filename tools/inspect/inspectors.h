// One function per kind: the artifact -> its description without "kind" and "path".
// All throw the UserErrors of the kind's reader.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

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

}  // namespace medusa
