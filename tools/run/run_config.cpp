#include "tools/run/run_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace medusa {

void RunConfig::validate() const {
  if (backbone.model.empty())
    throw UserError(
        "no model is named, expected a .gguf file or a model folder; name it with "
        "--model, or set backbone.model in the YAML");
}

bool TrainSection::has(StageKind stage) const {
  return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

void TrainSection::validate() const {
  check_stages(stages);
  if (!data_weights.empty() && data_weights.size() != data.size())
    throw UserError(fmt::format(
        "train.data_weights has {} number{}, train.data names {} dataset{}, expected a weight for "
        "each; add what is missing, or leave the weights out",
        data_weights.size(), data_weights.size() == 1 ? "" : "s", data.size(),
        data.size() == 1 ? "" : "s"));
  if (begin_with && !has(StageKind::Heads))
    throw UserError(
        "train.begin_with names heads for the stage heads, train.stages is [joint], expected heads "
        "among the stages; name them in train.joint.heads");
  config.validate();
}

void GenerateSection::validate() const {
  infer.validate();
  if (std::find(stop.begin(), stop.end(), "") != stop.end())
    throw UserError(
        "generate.stop holds an empty text, expected texts of a character or more; remove it");
}

std::filesystem::path RunConfig::dataset_part_folder(int64_t index, int64_t count) const {
  return std::filesystem::path(run) / fmt::format("dataset-{}-of-{}", index, count);
}

std::filesystem::path RunConfig::heads_folder() const {
  return generate.heads ? std::filesystem::path(*generate.heads) : own_heads_folder();
}

std::filesystem::path RunConfig::own_heads_folder() const {
  return std::filesystem::path(run) / "heads";
}

std::filesystem::path RunConfig::tree_file() const {
  return generate.tree ? std::filesystem::path(*generate.tree)
                       : std::filesystem::path(run) / "tree.yaml";
}

std::filesystem::path RunConfig::draft_folder() const {
  const auto& model = generate.infer.draft_model.model;
  return model ? std::filesystem::path(*model) : made_draft_folder();
}

std::filesystem::path RunConfig::eagle3_folder() const {
  const auto& named = generate.infer.eagle3.draft;
  return named ? std::filesystem::path(*named) : std::filesystem::path(run) / "eagle3";
}

std::filesystem::path RunConfig::store_file() const {
  const auto& store = generate.infer.retrieval.store;
  return store ? std::filesystem::path(*store) : std::filesystem::path(run) / "store.safetensors";
}

DraftFiles RunConfig::draft_files() const {
  return {heads_folder(), tree_file(),   store_file(),
          draft_folder(), layers_file(), eagle3_folder()};
}

}  // namespace medusa
