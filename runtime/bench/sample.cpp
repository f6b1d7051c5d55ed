#include "runtime/bench/sample.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/json_text.h"

namespace medusa {
namespace {

using nlohmann::json;

constexpr const char* kChecksum = "checksum";  // of the rest of a line

/// Half characters at the end of a text are replaced.
std::string line_text(const json& object) { return json_text(object); }

std::string part_key(size_t part) { return std::string(kStepParts[part]) + "_s"; }

json answer_json(const AnswerRecord& answer) {
  json out{{"text", answer.text},
           {"tokens", answer.tokens},
           {"finish", answer.finish},
           {"steps", answer.steps},
           {"proposed", answer.proposed},
           {"accepted", answer.accepted},
           {"emitted_per_step", answer.emitted_per_step},
           {"prefill_s", answer.prefill_s}};
  for (size_t part = 0; part < kNumStepParts; ++part) out[part_key(part)] = answer.parts_s[part];
  return out;
}

AnswerRecord read_answer(const json& object) {
  AnswerRecord out;
  object.at("text").get_to(out.text);
  object.at("tokens").get_to(out.tokens);
  object.at("finish").get_to(out.finish);
  object.at("steps").get_to(out.steps);
  object.at("proposed").get_to(out.proposed);
  object.at("accepted").get_to(out.accepted);
  object.at("emitted_per_step").get_to(out.emitted_per_step);
  object.at("prefill_s").get_to(out.prefill_s);
  for (size_t part = 0; part < kNumStepParts; ++part)
    object.at(part_key(part)).get_to(out.parts_s[part]);
  return out;
}

bool has_own_checksum(json object) {
  const auto checksum = object.at(kChecksum).get<std::string>();
  object.erase(kChecksum);
  return fingerprint_text(line_text(object)) == checksum;
}

BenchSample read_sample(const json& object) {
  BenchSample out;
  object.at("run").get_to(out.run);
  object.at("method").get_to(out.method);
  object.at("rule").get_to(out.rule);
  object.at("temperature").get_to(out.temperature);
  object.at("same_text_promised").get_to(out.same_text);
  object.at("question").get_to(out.question);
  object.at("id").get_to(out.id);
  object.at("category").get_to(out.category);
  object.at("repeat").get_to(out.repeat);
  object.at("peak_bytes").get_to(out.peak_bytes);
  for (const json& answer : object.at("answers")) out.answers.push_back(read_answer(answer));
  return out;
}

}  // namespace

double AnswerRecord::decode_s() const {
  return std::accumulate(parts_s.begin(), parts_s.end(), 0.0);
}

int64_t BenchSample::emitted() const {
  int64_t sum = 0;
  for (const AnswerRecord& answer : answers) sum += static_cast<int64_t>(answer.tokens.size());
  return sum;
}

int64_t BenchSample::steps() const {
  int64_t sum = 0;
  for (const AnswerRecord& answer : answers) sum += answer.steps;
  return sum;
}

double BenchSample::decode_s() const {
  double sum = 0;
  for (const AnswerRecord& answer : answers) sum += answer.decode_s();
  return sum;
}

std::string sample_line(const BenchSample& sample) {
  json out{{"run", sample.run},
           {"method", sample.method},
           {"rule", sample.rule},
           {"temperature", sample.temperature},
           {"same_text_promised", sample.same_text},
           {"question", sample.question},
           {"id", sample.id},
           {"category", sample.category},
           {"repeat", sample.repeat},
           {"peak_bytes", sample.peak_bytes},
           {"answers", json::array()}};
  for (const AnswerRecord& answer : sample.answers) out["answers"].push_back(answer_json(answer));
  out[kChecksum] = fingerprint_text(line_text(out));
  return line_text(out);
}

std::vector<BenchSample> read_samples(const std::filesystem::path& file) {
  std::vector<BenchSample> out;
  std::istringstream in(read_file(file));
  int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto fail = [&](const std::string& found) {
      throw UserError(
          fmt::format("{}:{}: {}, expected an answer that medusa bench wrote; remove the file and "
                      "bench.json, or give another folder with --out",
                      file.string(), number, found));
    };
    try {
      const json object = json::parse(line);
      if (!has_own_checksum(object)) fail("its contents are not those that its checksum says");
      out.push_back(read_sample(object));
    } catch (const json::exception& error) {
      fail(json_error_text(error.what()));
    }
  }
  return out;
}

void write_samples(const std::filesystem::path& file, const std::vector<BenchSample>& samples) {
  std::string text;
  for (const BenchSample& sample : samples) text += sample_line(sample) + "\n";
  write_file(file, text);
}

}  // namespace medusa
