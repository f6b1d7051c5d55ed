// Every architecture in every number format, from a folder and from GGUF: the table of
// backbone/README.md is what this test found. A cell compares the logits of a model stored in a
// format with those of the same numbers in one float32 .safetensors file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <vector>

#include "backbone/quantized_matrix.h"
#include "tests/backbone/architecture_models.h"
#include "tests/backbone/random_blocks.h"
#include "tests/base/temp_folder.h"

namespace medusa {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using Tensors = std::map<std::string, at::Tensor>;

constexpr double kFloatTolerance = 1e-4;  // float32 logits
constexpr double kQuantTolerance = 0.05;  // of the logits' norm, where rows are rounded to 8 bits
constexpr size_t kParts = 3;              // of a model in several files

enum class Container { Folder, Gguf };

struct Format {
  std::string name;
  Container container = Container::Folder;
  std::string elements;  // as the container spells them
  bool split = false;
};

std::vector<Format> formats() {
  std::vector<Format> all;
  for (const char* type : {"F32", "F16", "BF16", "F8_E4M3"})
    all.push_back({fmt::format("folder, {}", type), Container::Folder, type});
  all.push_back(
      {fmt::format("folder, BF16 in {} shards", kParts), Container::Folder, "BF16", true});
  for (const char* type : {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K",
                           "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"})
    all.push_back({fmt::format("GGUF, {}", type), Container::Gguf, type});
  all.push_back({fmt::format("GGUF, Q4_K in {} files", kParts), Container::Gguf, "Q4_K", true});
  return all;
}

GgmlType ggml_type(const std::string& name) {
  for (uint32_t id = 0; id < 40; ++id)
    if (const GgmlTypeInfo* info = find_ggml_type(id); info != nullptr && info->name == name)
      return info->type;
  ADD_FAILURE() << name;
  return GgmlType::F32;
}

at::ScalarType scalar_type(const std::string& name) {
  if (name == "F16") return at::kHalf;
  if (name == "BF16") return at::kBFloat16;
  return name == "F8_E4M3" ? at::kFloat8_e4m3fn : at::kFloat;
}

/// Sizes that superblocks of 256 numbers fit; a head stays as wide as it was.
json enlarged(json config) {
  config["hidden_size"] = 256;
  config["intermediate_size"] = 512;
  config["num_attention_heads"] = 16;
  config["num_key_value_heads"] = 4;
  return config;
}

/// One model in one format, and the same numbers in float32.
class StoredModel {
 public:
  StoredModel(const fs::path& folder, const json& settings, const Format& format)
      : folder_(folder), settings_(settings), format_(format) {
    fs::create_directories(folder / "plain");
    write_file(folder / "plain" / "config.json", settings.dump());
    config_ = read_hf_config(folder / "plain");
    plain_ = seeded_parameters(config_);
    format.container == Container::Folder ? write_folder() : write_gguf();
    write_tensors(folder / "plain" / "model.safetensors", plain_, {});
  }

  const fs::path& model() const { return model_; }
  fs::path plain() const { return folder_ / "plain"; }

 private:
  void write_folder() {
    model_ = folder_ / "stored";
    fs::create_directories(model_);
    write_file(model_ / "config.json", settings_.dump());
    const at::ScalarType type = scalar_type(format_.elements);
    std::array<Tensors, kParts> parts;
    json places = json::object();
    size_t next = 0;
    for (auto& [name, tensor] : plain_) {
      const size_t part = format_.split ? next++ % kParts : 0;
      const bool scaled = type == at::kFloat8_e4m3fn && tensor.dim() == 2;
      if (type == at::kFloat8_e4m3fn && !scaled) {
        parts[part][name] = tensor;
        continue;
      }
      parts[part][name] = (scaled ? tensor * 64 : tensor).to(type);
      tensor = parts[part][name].to(at::kFloat);
      if (scaled) {
        parts[part][name + "_scale_inv"] =
            at::full({(tensor.size(0) + 127) / 128, (tensor.size(1) + 127) / 128}, 1.0 / 64);
        tensor = tensor / 64;
      }
      places[name] = shard(part);
    }
    if (!format_.split) return write_tensors(model_ / "model.safetensors", parts[0], {});
    for (size_t i = 0; i < kParts; ++i) write_tensors(model_ / shard(i), parts[i], {});
    write_file(model_ / "model.safetensors.index.json", json{{"weight_map", places}}.dump());
  }
  static std::string shard(size_t part) {
    return fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, kParts);
  }

  StoredRows store(const std::string& name, const at::Tensor& elements) {
    const GgmlType type = ggml_type(format_.elements);
    if (ggml_type_info(type).block_size == 1) {
      const at::Tensor rounded = elements.to(scalar_type(format_.elements));
      plain_[name] = rounded.to(at::kFloat);
      return {type, rounded.view(at::kByte)};
    }
    const at::Tensor blocks = blocks_like(type, name, elements);
    plain_[name] = elements_of_quantized(type, blocks, elements.size(1));
    return {type, blocks};
  }

  void write_gguf() {
    const fixtures::GgufBuilder whole =
        gguf_model(config_, settings_, [this](const std::string& name, const at::Tensor& elements) {
          return store(name, elements);
        });
    if (!format_.split) {
      model_ = whole.write(folder_ / "a.gguf");
      return;
    }
    whole.write(folder_ / "whole.gguf");
    const GgufFile file(folder_ / "whole.gguf");
    std::vector<fixtures::GgufBuilder> parts(kParts);
    parts[0] = fixtures::GgufBuilder(file);
    for (size_t i = 0; i < file.tensors().size(); ++i) {
      const GgufTensor& tensor = file.tensors()[i];
      const auto data = file.data(tensor);
      if (i % kParts == 0) continue;
      parts[0].drop(tensor.name);
      parts[i % kParts].tensor(tensor.name, tensor.dims, tensor.type,
                               {reinterpret_cast<const char*>(data.data()), data.size()});
    }
    for (size_t i = 0; i < kParts; ++i)
      parts[i]
          .set("split.no", static_cast<uint32_t>(i))
          .set("split.count", static_cast<uint32_t>(kParts))
          .write(folder_ / fmt::format("a-{:05}-of-{:05}.gguf", i + 1, kParts));
    model_ = folder_ / fmt::format("a-{:05}-of-{:05}.gguf", 1, kParts);
  }

  fs::path folder_;
  const json& settings_;
  const Format& format_;
  ModelConfig config_;
  Tensors plain_;
  fs::path model_;
};

/// What one format gave for one model.
struct Cell {
  bool agrees = false;       // in float32
  bool blocks_agree = true;  // with --dtype stored, within the rounding of rows
};

Cell compare(const json& settings, const Format& format, const std::vector<TokenId>& tokens) {
  const fixtures::TempFolder folder;
  const StoredModel model(folder.path(), settings, format);
  const at::Tensor expected = logits_of(load_weights(model.plain(), at::kFloat, at::kCPU), tokens);
  const at::Tensor found = logits_of(load_weights(model.model(), at::kFloat, at::kCPU), tokens);
  Cell cell;
  cell.agrees = (found - expected).abs().max().item<double>() <= kFloatTolerance;
  if (format.container == Container::Gguf && quant_format(ggml_type(format.elements))) {
    const at::Tensor rounded =
        logits_of(load_weights(model.model(), at::kFloat, at::kCPU, QuantKind::Stored), tokens);
    cell.blocks_agree = (rounded - expected).norm().item<double>() <=
                        kQuantTolerance * expected.norm().item<double>();
  }
  return cell;
}

/// The models of an architecture that a container has words for.
std::vector<const json*> models_of(const json& golden, std::string_view architecture,
                                   Container container) {
  std::vector<const json*> models;
  for (const auto& [name, entry] : golden.items())
    if (is_model(entry) && entry.at("config").at("model_type") == architecture &&
        (container == Container::Folder || entry.at("in_gguf").get<bool>()))
      models.push_back(&entry);
  return models;
}

/// "✓", or what is wrong.
std::string mark(const std::vector<const json*>& models, const Format& format,
                 const std::vector<TokenId>& tokens, bool& blocks_agree) {
  if (models.empty()) return "–";
  for (const json* model : models) {
    const Cell cell = compare(enlarged(model->at("config")), format, tokens);
    if (!cell.agrees) return "differs";
    blocks_agree = blocks_agree && cell.blocks_agree;
  }
  return "✓";
}

TEST(ModelFormats, TheTableInTheReadmeIsWhatEveryCellGave) {
  const json golden = read_golden();
  auto tokens = golden.at("tokens").get<std::vector<TokenId>>();
  tokens.resize(24);
  std::string table = "| stored as |", rule = "|---|";
  for (const Architecture& architecture : architectures()) {
    table += fmt::format(" {} |", architecture.name);
    rule += "---|";
  }
  table += " `--dtype stored` |\n" + rule + "---|\n";
  for (const Format& format : formats()) {
    table += fmt::format("| {} |", format.name);
    bool blocks_agree = true;
    for (const Architecture& architecture : architectures()) {
      const auto models = models_of(golden, architecture.name, format.container);
      table += fmt::format(" {} |", mark(models, format, tokens, blocks_agree));
    }
    const bool quantized =
        format.container == Container::Gguf && quant_format(ggml_type(format.elements));
    table += fmt::format(" {} |\n", !quantized ? "" : blocks_agree ? "✓" : "differs");
  }
  EXPECT_EQ(table.find("differs"), std::string::npos);
  EXPECT_NE(read_file(MEDUSA_SOURCE_DIR "/backbone/README.md").find(table), std::string::npos)
      << "backbone/README.md should have this table:\n"
      << table;
}

}  // namespace
}  // namespace medusa
