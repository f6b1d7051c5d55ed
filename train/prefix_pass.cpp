#include "train/prefix_pass.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backbone/reference_layer.h"
#include "base/check.h"
#include "train/joint/llama_layer.h"

namespace medusa {
namespace {

/// Who looks where. The asked positions of one answer make a group; all groups are filled up to the
/// largest, so that attention is one GEMM.
struct AttentionGroups {
  at::Tensor queries;    // [groups * Q] index among the asked; filled up with any
  at::Tensor keys;       // [groups * T] row of the answers; filled up with any
  at::Tensor mask;       // [groups, 1, 1, Q, T] 0 where a query sees a key, else minus infinity
  at::Tensor places;     // [n] of each asked position among the queries
  at::Tensor positions;  // [m] of each row in its answer
  at::Tensor rows;       // [n] asked
  int64_t num_groups = 0, num_queries = 0, num_keys = 0;
};

/// An answer of which some positions are asked.
struct Asked {
  int64_t begin = 0;           // its first row
  std::vector<int64_t> which;  // index among all that are asked
};

AttentionGroups group_positions(const AnswerRows& answers, std::span<const int64_t> rows,
                                at::Device device) {
  std::vector<int64_t> positions, answer_of;  // [m]
  std::vector<Asked> all;
  for (const int64_t length : answers.lengths) {
    all.push_back({std::ssize(positions), {}});
    for (int64_t i = 0; i < length; ++i) {
      positions.push_back(i);
      answer_of.push_back(std::ssize(all) - 1);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i)
    all[static_cast<size_t>(answer_of.at(static_cast<size_t>(rows[i])))].which.push_back(
        static_cast<int64_t>(i));
  std::erase_if(all, [](const Asked& each) { return each.which.empty(); });

  AttentionGroups out;
  out.num_groups = std::ssize(all);
  for (const Asked& each : all) out.num_queries = std::max(out.num_queries, std::ssize(each.which));
  const auto position_of = [&](int64_t asked) {
    return positions[static_cast<size_t>(rows[static_cast<size_t>(asked)])];
  };
  for (size_t i = 0; i < rows.size(); ++i)
    out.num_keys = std::max(out.num_keys, position_of(static_cast<int64_t>(i)) + 1);
  const int64_t q = out.num_queries, t = out.num_keys;
  std::vector<int64_t> queries, keys, places(rows.size());
  at::Tensor mask = at::full({out.num_groups, 1, 1, q, t}, -std::numeric_limits<float>::infinity());
  float* visible = mask.data_ptr<float>();
  for (const Asked& each : all) {
    for (int64_t i = 0; i < q; ++i, visible += t) {
      const bool filler = i >= std::ssize(each.which);
      const int64_t asked = filler ? 0 : each.which[static_cast<size_t>(i)];
      if (!filler) places[static_cast<size_t>(asked)] = std::ssize(queries);
      queries.push_back(asked);
      std::fill_n(visible, filler ? 1 : position_of(asked) + 1, 0.0F);  // one: no row without any
    }
    for (int64_t i = 0; i < t; ++i)
      keys.push_back(std::min(each.begin + i, std::ssize(positions) - 1));
  }
  const auto index = [device](const std::vector<int64_t>& numbers) {
    return at::tensor(numbers, at::kLong).to(device);
  };
  out.queries = index(queries);
  out.keys = index(keys);
  out.mask = mask.to(device);
  out.places = index(places);
  out.positions = index(positions);
  out.rows = index({rows.begin(), rows.end()});
  return out;
}

/// Grouped-query attention, in float32.
/// @param query       [n, A, D]
/// @param key, value  [m, G, D]
/// @returns           [n, A D]
at::Tensor attend_groups(const AttentionGroups& groups, const at::Tensor& query,
                         const at::Tensor& key, const at::Tensor& value) {
  const int64_t heads = query.size(1), kv_heads = key.size(1), size = query.size(2);
  const int64_t b = groups.num_groups, q = groups.num_queries, t = groups.num_keys;
  const at::Tensor asked = query.index_select(0, groups.queries)
                               .view({b, q, kv_heads, heads / kv_heads, size})
                               .permute({0, 2, 3, 1, 4});  // [b, G, A / G, q, D]
  const auto gather = [&](const at::Tensor& rows) {        // [b, G, 1, t, D]
    return rows.index_select(0, groups.keys)
        .view({b, t, kv_heads, size})
        .transpose(1, 2)
        .unsqueeze(2);
  };
  const at::Tensor scores =
      at::matmul(asked * (1 / std::sqrt(static_cast<double>(size))), gather(key).transpose(-1, -2));
  const at::Tensor attention_out = at::matmul((scores + groups.mask).softmax(-1), gather(value));
  return attention_out.permute({0, 3, 1, 2, 4})
      .reshape({b * q, heads * size})
      .index_select(0, groups.places);
}

}  // namespace

at::Tensor prefix_states(const PrefixLayer& prefix, const RopeTable& rope,
                         const AnswerRows& answers, std::span<const int64_t> rows) {
  MEDUSA_ASSERT(!rows.empty());
  const ModelConfig& c = prefix.config;
  const LayerWeights& layer = prefix.layer;
  const at::ScalarType dtype = answers.hidden.scalar_type();
  const AttentionGroups groups = group_positions(answers, rows, answers.hidden.device());
  const int64_t n = std::ssize(rows), m = answers.hidden.size(0);
  const int64_t query_size = c.num_heads * c.head_size, kv_size = c.num_kv_heads * c.head_size;
  const auto matmul = [dtype](const at::Tensor& x, const at::Tensor& matrix) {
    return reference_matmul(x, matrix, dtype).to(at::kFloat);
  };
  // As precise as the cache that decoding keeps them in.
  const auto rounded = [dtype](const at::Tensor& x) { return x.to(dtype).to(at::kFloat); };

  const at::Tensor x =
      answers.hidden.to(at::kFloat) + matmul(answers.roots, prefix.token);  // [m, H]
  const at::Tensor normed = rms_norm(x, layer.attention_norm, c.norm_epsilon);
  const at::Tensor query =
      matmul(normed.index_select(0, groups.rows), layer.qkv.narrow(0, 0, query_size));
  const auto sides = matmul(normed, layer.qkv.narrow(0, query_size, 2 * kv_size)).chunk(2, 1);
  const at::Tensor attention_out = attend_groups(
      groups,
      rounded(apply_rope(query.view({n, c.num_heads, -1}),
                         groups.positions.index_select(0, groups.rows), rope)),
      rounded(apply_rope(sides[0].reshape({m, c.num_kv_heads, -1}), groups.positions, rope)),
      rounded(sides[1].reshape({m, c.num_kv_heads, -1})));

  const LayerMatmul by_name = [&](const at::Tensor& each, LayerMatrix matrix) {
    const at::Tensor out = matmul(each, matrix_of(layer, matrix));
    const bool is_added = matrix == LayerMatrix::Output || matrix == LayerMatrix::Down;
    return is_added && prefix.scale.defined() ? out * prefix.scale : out;
  };
  const at::Tensor sum =
      run_layer_tail(c, by_name, layer, attention_out, x.index_select(0, groups.rows));
  return normed_sum(prefix, sum).to(dtype);
}

}  // namespace medusa
