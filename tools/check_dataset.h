// The run's training text, and whether the run's model made it.
#pragma once

#include <string>

#include "backbone/model_config.h"
#include "data/dataset/dataset_reader.h"
#include "data/tokenizer/tokenizer.h"
#include "tools/run_config.h"

namespace medusa {

/// The datasets of train.data with their weights, else the run's own.
/// @throws UserError  as DatasetReader does.
DatasetReader open_dataset(const RunConfig& config);

/// @param backbone  fingerprint of the model's weights.
/// @param model     its dimensions.
/// @returns  whether its recorded states are this model's. They are not if the model was tuned here
///           from the one that wrote the dataset: then its text serves all the same.
/// @throws UserError  it was made with another model or tokenizer, or says so and holds tokens,
///                    states or texts that this model cannot read.
bool check_dataset(const DatasetReader& dataset, const RunConfig& config,
                   const std::string& backbone, const ModelConfig& model);

/// For what reads its tokens alone.
/// @throws UserError  it was made with another tokenizer.
void check_dataset_tokenizer(const DatasetReader& dataset, const RunConfig& config);

/// For what turns its tokens into text.
/// @throws UserError  a token is none of the tokenizer's.
void check_tokens(const DatasetReader& dataset, const Tokenizer& tokenizer);

}  // namespace medusa
