// Whether a dataset is a model's own text.
#pragma once

#include <filesystem>
#include <string>

#include "backbone/model_config.h"
#include "data/dataset/dataset_reader.h"

namespace medusa {

/// @param model     its file or folder.
/// @param backbone  fingerprint of its weights.
/// @param shape     its dimensions.
/// @returns  whether its recorded states are this model's. They are not if the model was tuned here
///           from the one that wrote the dataset: then its text serves all the same.
/// @throws UserError  it was made with another model or tokenizer, or says so and holds tokens,
///                    states or texts that this model cannot read.
bool check_dataset(const DatasetReader& dataset, const std::filesystem::path& model,
                   const std::string& backbone, const ModelConfig& shape);

/// For what reads its tokens alone.
/// @param model  its file or folder.
/// @throws UserError  it was made with another tokenizer.
void check_dataset_tokenizer(const DatasetReader& dataset, const std::filesystem::path& model);

}  // namespace medusa
