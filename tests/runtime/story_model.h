// The tiny model that writes stories, as a program over the library loads it.
#pragma once

#include <string>

#include "runtime/model_options.h"

namespace medusa::fixtures {

inline const std::string kStoryModel = MEDUSA_SOURCE_DIR "/tests/golden/tiny_model.gguf";

inline ModelOptions story_options() {
  ModelOptions options;
  options.device = DeviceKind::Cpu;
  options.threads = 1;
  options.context = 128;
  options.chat_template = "plain";
  return options;
}

}  // namespace medusa::fixtures
