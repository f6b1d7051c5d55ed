#include <fmt/format.h>

#include <functional>

#include "tools/profile/profile_result.h"

namespace medusa {
namespace {

using Steps = std::vector<const ProfiledStep*>;  // of one context

std::string line(const std::string& name, const Steps& steps,
                 const std::function<std::string(const ProfiledStep&)>& cell) {
  std::string text = fmt::format("  {:<24}", name);
  for (const ProfiledStep* step : steps) text += fmt::format("{:>9}", cell(*step));
  return text + "\n";
}

std::string heading(const std::string& name, const Steps& steps) {
  std::string text = fmt::format("{:<26}", name);
  for (const ProfiledStep* step : steps) text += fmt::format("{:>9}", step->rows);
  return text + "\n";
}

std::string short_share(const ProfiledPart& part, const Roofline& roofline) {
  const RooflineShares shares = shares_of(part, roofline);
  if (shares.larger() == 0) return "–";
  return fmt::format("{:.0f} {}", 100 * shares.larger(),
                     shares.memory >= shares.arithmetic ? "m" : "a");
}

std::string context_table(const Profile& profile, const Steps& steps) {
  const ProfiledStep& first = *steps.front();
  std::string text =
      fmt::format("\nbehind {} tokens\n{}", first.context, heading("ms, by rows", steps));
  for (size_t i = 0; i < first.parts.size(); ++i)
    text += line(first.parts[i].name, steps,
                 [i](const ProfiledStep& step) { return fmt::format("{:.3f}", step.parts[i].ms); });
  text += line("step", steps,
               [](const ProfiledStep& step) { return fmt::format("{:.3f}", step.ms()); });
  text +=
      line(fmt::format("step / {} row{}", first.rows, first.rows == 1 ? "" : "s"), steps,
           [&](const ProfiledStep& step) { return fmt::format("{:.2f}", step.ms() / first.ms()); });
  if (first.launches) {
    text += line("kernels started", steps,
                 [](const ProfiledStep& step) { return std::to_string(step.launches->kernels); });
    text += line("LibTorch's ops", steps,
                 [](const ProfiledStep& step) { return std::to_string(step.launches->ops); });
  }
  text += heading("% of the roof, by rows", steps);
  for (size_t i = 0; i < first.parts.size(); ++i)
    if (shares_of(first.parts[i], profile.roofline).larger() > 0)
      text += line(first.parts[i].name, steps, [&, i](const ProfiledStep& step) {
        return short_share(step.parts[i], profile.roofline);
      });
  return text;
}

}  // namespace

std::string roofline_text(const ProfiledPart& part, const Roofline& roofline) {
  const RooflineShares shares = shares_of(part, roofline);
  if (shares.larger() == 0) return "–";
  return fmt::format("{:.0f} % of {}", 100 * shares.larger(),
                     shares.memory >= shares.arithmetic ? "memory" : "arithmetic");
}

std::string profile_table(const Profile& profile) {
  std::string text = fmt::format(
      "{}\nroof: memory is read at {:.1f} GB/s and copied at {:.1f} GB/s, products run at {:.0f} "
      "GFLOP/s\n",
      profile.machine, profile.roofline.read_bytes_per_s / kGiga,
      profile.roofline.copy_bytes_per_s / kGiga, profile.roofline.flops_per_s / kGiga);
  for (const Steps& steps : by_context(profile)) text += context_table(profile, steps);
  if (!profile.complete)
    text += fmt::format("\ninterrupted: only the first {} repetitions\n", profile.repeats);
  return text +
         "\nm: of the memory's roof, a: of the arithmetic's; the nearer of the two. Weights and "
         "cache rows\ncount once, what stays in the processor's caches does not.\n";
}

}  // namespace medusa
