// medusa.cpp as a library, in one header.
//
//   const auto model = medusa::Model::load("model.gguf");
//   medusa::Generator generator(model, {});
//   std::cout << generator.generate("What is gravity?").text;
//
// What the caller can correct is thrown as medusa::UserError: where, what was found, what was
// expected, what to do. Nothing is printed and nothing of the process is changed.
#pragma once

#include "base/error.h"                   // IWYU pragma: export
#include "data/dataset/dataset_reader.h"  // IWYU pragma: export
#include "data/prompts.h"                 // IWYU pragma: export
#include "heads/heads_checkpoint.h"       // IWYU pragma: export
#include "heads/tree/choice_tree.h"       // IWYU pragma: export
#include "infer/drafter.h"                // IWYU pragma: export
#include "infer/tree_builder.h"           // IWYU pragma: export
#include "runtime/answer.h"               // IWYU pragma: export
#include "runtime/bench/conditions.h"     // IWYU pragma: export
#include "runtime/bench/sample.h"         // IWYU pragma: export
#include "runtime/calibrator.h"           // IWYU pragma: export
#include "runtime/distiller.h"            // IWYU pragma: export
#include "runtime/draft_folder.h"         // IWYU pragma: export
#include "runtime/generator.h"            // IWYU pragma: export
#include "runtime/heads_trainer.h"        // IWYU pragma: export
#include "runtime/model.h"                // IWYU pragma: export
