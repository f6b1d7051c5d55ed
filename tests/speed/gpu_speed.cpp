// How long GEMMs, plain steps and Medusa steps of models of known sizes take on a GPU, and how fast
// it distils and trains; of random weights, so that no file is needed. Not a test: built and run by
// tools/gpu_check.sh.
//
//   gpu_speed [--device cuda] [--shape smollm2-135m,llama-2-7b,llama-3-8b] [--samples 30]
//             [--only gemms,steps,medusa,work] [--sequences 128] [--new-tokens 64]
//
// For a profiler's look at each kernel of a step:
//   ncu --profile-from-start off --cache-control none gpu_speed --only marked --shape llama-2-7b
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/model.h"
#include "tests/base/temp_folder.h"
#include "tests/speed/gemm_speed.h"
#include "tests/speed/medusa_speed.h"
#include "tests/speed/step_speed.h"
#include "tests/speed/work_speed.h"
#include "tools/run/open_model.h"

#ifdef MEDUSA_WITH_CUDA_HEADERS
#include <cuda_profiler_api.h>

static void mark(bool begins) { begins ? cudaProfilerStart() : cudaProfilerStop(); }
#else
static void mark(bool) {
  throw medusa::UserError(
      "--only: found marked in a program without CUDA, expected one made where nvcc is; leave "
      "marked out");
}
#endif

int main(int argc, char** argv) {
  CLI::App app(
      "Times GEMMs, plain and Medusa steps, distillation and training of models with random "
      "weights.");
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
  std::vector<std::string> parts{"steps", "work"};
  app.add_option("--only", parts,
                 "what is timed: some of gemms, steps, medusa, work; or marked steps")
      ->delimiter(',')
      ->check(CLI::IsMember({"gemms", "steps", "medusa", "work", "marked"}))
      ->capture_default_str();
  std::vector<int64_t> contexts;
  app.add_option("--contexts", contexts, "tokens before a step; the shape's own if not given")
      ->delimiter(',')
      ->check(CLI::Range(2, 3500));  // the models' contexts hold 4,096
  std::vector<int32_t> rows;
  app.add_option("--rows", rows, "of a step; the shape's own if not given")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
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
    const auto print = [&](const char* part, const auto& table) {
      if (std::ranges::find(parts, part) == parts.end()) return;
      fmt::print("{}\n", table());
      std::fflush(stdout);
    };
    const at::ScalarType dtype = placement.dtype;
    const at::Device where = placement.device;
    for (const std::string& name : shapes) {
      medusa::SpeedShape shape = medusa::speed_shape(name);
      if (!contexts.empty()) shape.contexts = contexts;
      if (!rows.empty()) shape.rows = rows;
      std::ranges::sort(shape.rows);
      shape.rows.erase(std::ranges::unique(shape.rows).begin(), shape.rows.end());
      print("gemms", [&] {
        return medusa::gemm_speed_table(name, medusa::measure_gemm_speed(shape, where, samples));
      });
      print("steps", [&] {
        return medusa::step_speed_table(
            medusa::measure_step_speed(shape, dtype, where, samples, /*seed=*/1));
      });
      print("medusa", [&] {
        return medusa::medusa_speed_table(
            name, medusa::measure_medusa_speed(shape, dtype, where, samples, /*seed=*/1));
      });
      print("marked", [&] {
        medusa::run_marked_steps(shape, dtype, where, /*seed=*/1, mark);
        return name + ": steps between the profiler's marks";
      });
      print("work", [&] {
        const medusa::fixtures::TempFolder scratch;
        return medusa::work_speed_table(medusa::measure_work_speed(
            shape, dtype, where, sequences, new_tokens, scratch.path(), /*seed=*/1));
      });
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
