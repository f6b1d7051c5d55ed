// How many numbers of which format a set of tensors holds.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace medusa {

class TensorTotals {
 public:
  /// @param type  as the file spells it: "Q4_1", "BF16".
  void add(std::string_view type, int64_t num_elements, int64_t bytes);

  int64_t num_tensors() const;
  int64_t num_parameters() const;

  /// Adds "num_tensors", "num_parameters", "tensor_data_bytes", "bits_per_parameter" and the table
  /// "tensors_by_type", largest first.
  void describe(nlohmann::ordered_json& object) const;

 private:
  struct Total {
    int64_t tensors = 0, parameters = 0, bytes = 0;
  };
  std::map<std::string, Total> by_type_;
};

}  // namespace medusa
