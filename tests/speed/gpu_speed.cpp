// How long plain steps of models of known sizes take on a GPU, and how fast it distils and trains;
// of random weights, so that no file is needed. Not a test: built and run by tools/gpu_check.sh.
//
//   gpu_speed [--device cuda] [--shape smollm2-135m,llama-2-7b,llama-3-8b] [--samples 30]
//             [--sequences 128] [--new-tokens 64]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/model.h"
#include "tests/base/temp_folder.h"
#include "tests/speed/step_speed.h"
#include "tests/speed/work_speed.h"
#include "tools/run/open_model.h"

int main(int argc, char** argv) {
  CLI::App app("Times plain steps, distillation and training of models with random weights.");
  std::string device = "cuda";
  std::vector<std::string> shapes{"smollm2-135m", "llama-2-7b", "llama-3-8b"};
  int64_t samples = 30;
  app.add_option("--device", device, "where the model is")
      ->check(CLI::IsMember({"cuda", "cpu"}))
      ->capture_default_str();
  app.add_option("--shape", shapes, "tiny, smollm2-135m, llama-2-7b, llama-3-8b")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--samples", samples, "of each thing that is timed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  int32_t sequences = 128, new_tokens = 64;
  app.add_option("--sequences", sequences, "distilled at the same time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--new-tokens", new_tokens, "of each of them")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    medusa::BackboneSection backbone;
    backbone.device = device == "cpu" ? medusa::DeviceKind::Cpu : medusa::DeviceKind::Cuda;
    const medusa::Placement placement = medusa::place_process(backbone);
    for (const std::string& name : shapes) {
      const medusa::SpeedShape shape = medusa::speed_shape(name);
      fmt::print("{}\n", medusa::step_speed_table(medusa::measure_step_speed(
                             shape, placement.dtype, placement.device, samples, /*seed=*/1)));
      std::fflush(stdout);
      const medusa::fixtures::TempFolder scratch;
      fmt::print("{}\n", medusa::work_speed_table(medusa::measure_work_speed(
                             shape, placement.dtype, placement.device, sequences, new_tokens,
                             scratch.path(), /*seed=*/1)));
      std::fflush(stdout);
    }
    return 0;
  } catch (const medusa::UserError& error) {
    fmt::print(stderr, "gpu_speed: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_speed: {}\n", error.what());
    return 70;
  }
}
