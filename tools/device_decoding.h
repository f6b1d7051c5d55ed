// Whether settings can be decoded by the GPU's own loop, and that loop made for them.
#pragma once

#include <memory>
#include <string>

#include "infer/cuda/device_decoder.h"
#include "infer/factory.h"
#include "infer/infer_config.h"

namespace medusa {

struct DeviceDecoding {
  std::unique_ptr<DeviceHeads> heads;  // null: plain decoding
  std::unique_ptr<DeviceDecoder> decoder;
};

/// For plain decoding and for heads without a prefix layer over the whole choice tree, under the
/// rules greedy, match and typical with no tokens filtered, on a backbone that runs on a GPU's
/// kernels.
/// @param settings  whose `graphs` says whether it is wanted.
/// @param parts     of the drafter; its heads and shape are read.
/// @returns         null where the loop of decoder.h is to run. Must not outlive the target.
std::unique_ptr<DeviceDecoding> make_device_decoding(const InferConfig& settings,
                                                     const DraftParts& parts,
                                                     BackboneTarget& target,
                                                     const DeviceLoopKernels& kernels);

/// The graphs that a decoder has captured, a line each for people: "graph: 1 sequence of 8 nodes
/// within 512 tokens, 421 kernels". Empty: none.
std::string graphs_text(const DeviceDecoder& decoder);

}  // namespace medusa
