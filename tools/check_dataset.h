// Whether the run's dataset was made by the run's model.
#pragma once

#include <string>

#include "data/dataset_reader.h"
#include "tools/run_config.h"

namespace medusa {

/// @param backbone  fingerprint of the model's weights.
/// @returns  whether its recorded states are this model's. They are not if the model was tuned here
///           from the one that wrote the dataset: then its text serves all the same.
/// @throws UserError  it was made with another model or tokenizer.
bool check_dataset(const DatasetReader& dataset, const RunConfig& config,
                   const std::string& backbone);

/// For what reads its tokens alone.
/// @throws UserError  it was made with another tokenizer.
void check_dataset_tokenizer(const DatasetReader& dataset, const RunConfig& config);

}  // namespace medusa
