// A model ready to use: weights on their device, tokenizer, chat template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backbone/llama.h"
#include "data/chat/chat_template.h"
#include "data/tokenizer/tokenizer.h"
#include "infer/backbone_target.h"
#include "tools/run_config.h"

namespace medusa {

/// Where and in which dtype this run computes.
struct Placement {
  at::Device device;
  at::ScalarType dtype;  // of states, cache and embedding, and of weights that are not in blocks
  BlockKind blocks = BlockKind::None;
  ExecutionOptions execution = {};  // threads and ISA on a CPU
};

/// Sets LibTorch's number of threads, too.
/// @param local_rank  of several processes on this machine: they take the GPUs in turns.
/// @throws UserError  a GPU is asked for and none is there, or block weights on a GPU; an ISA of
///                    the CPU that it does not have, or beside a GPU or float32.
Placement place(const BackboneSection& config, int64_t local_rank = 0);

/// What training computes in. Its products have a thousand rows: without AMX, float32 ones are
/// faster than bfloat16 ones (130 against 76 GFLOP/s a core, measured with LibTorch 2.11).
at::ScalarType training_dtype(const BackboneSection& config, const Placement& placement);

struct Session {
  std::unique_ptr<Tokenizer> tokenizer;
  ChatTemplate chat;
  std::unique_ptr<Llama> llama;
  std::vector<TokenId> eos;  // whatever ends an answer
  int64_t context = 0;       // most tokens of a sequence in this run

  /// The chat template around one conversation, ready for the answer.
  std::vector<TokenId> encode(const std::vector<ChatMessage>& messages) const;
};

/// Opens tokenizer and template first (cheap, and where most mistakes show), then loads the
/// weights.
/// @throws UserError
Session open_session(const BackboneSection& config);

/// Threads that run its passes.
int num_threads(const Llama& llama);

/// A target for so many sequences at the same time, within backbone.cache_mb.
/// @param rows        most of one sequence; at most the model's context.
/// @throws UserError  the cache does not hold one such sequence.
BackboneTarget open_target(const BackboneSection& config, const Session& session,
                           int32_t num_sequences, int64_t rows);

/// "Intel(R) Xeon(R) Processor, 2 threads, bfloat16, AMX bfloat16 tiles": for reports and tree
/// files.
std::string machine_text(const Llama& llama);

}  // namespace medusa
