#include "backbone/architecture.h"

#include <array>
#include <vector>

namespace medusa {
namespace {

constexpr std::array kArchitectures = {
    Architecture{.name = "llama", .class_name = "LlamaForCausalLM", .gguf_interleaves_rope = true},
    // GGUF files call it a Llama; one with a window is taken for it.
    Architecture{.name = "mistral",
                 .class_name = "MistralForCausalLM",
                 .in_gguf = false,
                 .gguf_interleaves_rope = true,
                 .windows = WindowRule::Always,
                 .window = 4096},
    Architecture{.name = "phi3",
                 .class_name = "Phi3ForCausalLM",
                 .fused_matrices = true,
                 .partial_rotary = true,
                 .windows = WindowRule::Always},
    Architecture{.name = "qwen2",
                 .class_name = "Qwen2ForCausalLM",
                 .qkv_bias = true,
                 .windows = WindowRule::Switched,
                 .window = 4096},
    Architecture{.name = "qwen3",
                 .class_name = "Qwen3ForCausalLM",
                 .qk_norm = true,
                 .windows = WindowRule::Switched,
                 .window = 4096},
    Architecture{.name = "smollm3",
                 .class_name = "SmolLM3ForCausalLM",
                 .gguf_interleaves_rope = true,
                 .no_rope_interval = 4,
                 .windows = WindowRule::Switched,
                 .tied_output = true,
                 .rope_base = 2000000},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& architecture : kArchitectures)
    if (architecture.name == name) return &architecture;
  return nullptr;
}

std::string architecture_names(bool in_gguf) {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : kArchitectures)
    if (architecture.in_gguf || !in_gguf) names.push_back(architecture.name);
  std::string text(names[0]);
  for (size_t i = 1; i < names.size(); ++i)
    text.append(i + 1 == names.size() ? " or " : ", ").append(names[i]);
  return text;
}

}  // namespace medusa
