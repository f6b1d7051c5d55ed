#include "runtime/layer_choice.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/json_text.h"
#include "data/json.h"

namespace medusa {
namespace {

constexpr int kLayersVersion = 1;

}  // namespace

nlohmann::ordered_json layer_choice_json(const LayerChoice& choice) {
  return {{"backbone", choice.backbone},   {"skip", choice.skip},
          {"agreement", choice.agreement}, {"cost_of_a_drafted_token", choice.cost},
          {"num_draft", choice.num_draft}, {"expected_speedup", choice.speedup}};
}

void write_layer_choice(const std::filesystem::path& file, const LayerChoice& choice) {
  nlohmann::ordered_json out{{"format", kLayersFormat}, {"version", kLayersVersion}};
  out.update(layer_choice_json(choice));
  write_file(file, json_text(out, 2) + "\n");
}

LayerChoice read_layer_choice(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file))
    throw UserError(
        fmt::format("{}: not found, expected the layers that drafting may skip; run medusa "
                    "calibrate --layers, or list them in generate.layer_skip.skip",
                    file.string()));
  LayerChoice choice;
  try {
    const nlohmann::json in = nlohmann::json::parse(read_file(file));
    if (in.at("format") != kLayersFormat || in.at("version") != kLayersVersion)
      throw UserError(fmt::format(
          "{}: format {} version {}, expected {} version {}; run medusa calibrate --layers again",
          file.string(), json_text(in.at("format")), json_text(in.at("version")), kLayersFormat,
          kLayersVersion));
    in.at("backbone").get_to(choice.backbone);
    choice.skip = need_json<std::vector<int64_t>>(in, "skip", file.string());
    in.at("agreement").get_to(choice.agreement);
    in.at("cost_of_a_drafted_token").get_to(choice.cost);
    choice.num_draft = need_json<int32_t>(in, "num_draft", file.string());
    in.at("expected_speedup").get_to(choice.speedup);
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format(
        "{}: cannot be read ({}), expected what medusa calibrate --layers wrote; run it again",
        file.string(), json_error_text(error.what())));
  }
  return choice;
}

LayerChoice read_layer_choice(const std::filesystem::path& file, const std::string& backbone) {
  LayerChoice choice = read_layer_choice(file);
  if (choice.backbone != backbone)
    throw UserError(fmt::format(
        "{}: was measured on model {}, the model given is {}; run medusa calibrate --layers again",
        file.string(), short_fingerprint(choice.backbone), short_fingerprint(backbone)));
  return choice;
}

}  // namespace medusa
