// A row of logits cut into chunks, which threads share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "backbone/cpu/layout/tile_layout.h"
#include "backbone/cpu/threads/thread_pool.h"

namespace medusa {

/// Logits of a chunk; the last one of a row may be shorter. What is found in the chunks is put
/// together in their order, so it is the same bits for any number of threads.
inline constexpr size_t kRowChunk = 2048;

/// A row's largest logit and where it first stands.
struct RowPeak {
  float value = -std::numeric_limits<float>::infinity();
  size_t place = 0;
};

/// Finds the peak of one chunk; a NaN is never the peak. @param first  its place in the row.
RowPeak chunk_peak(std::span<const float> chunk, size_t first);

inline int64_t num_chunks(size_t row_size) {
  return ceil_div(static_cast<int64_t>(row_size), static_cast<int64_t>(kRowChunk));
}

/// Calls body(chunk, its first place, its size) for the chunks of a range.
template <typename Body>
void for_each_chunk(Range range, const Body& body) {
  for (auto at = static_cast<size_t>(range.begin), end = static_cast<size_t>(range.end); at < end;
       at += kRowChunk)
    body(at / kRowChunk, at, std::min(kRowChunk, end - at));
}

/// Calls body([begin, end), peak) for ranges of the row that are whole chunks and together
/// all of it, once its peak is known; on the threads of a pool, which is idle, at the same time.
/// @param threads  null: on the calling thread alone.
/// @returns  the peak.
template <typename Body>
RowPeak after_peak(std::span<const float> row, ThreadPool* threads, const Body& body) {
  const int64_t chunks = num_chunks(row.size());
  std::vector<RowPeak> peaks(static_cast<size_t>(chunks));
  const auto range_of = [&](int64_t begin, int64_t end) {
    return Range{begin * static_cast<int64_t>(kRowChunk),
                 std::min(end * static_cast<int64_t>(kRowChunk), std::ssize(row))};
  };
  const auto find_peaks = [&](Range mine) {
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const Range part = range_of(i, i + 1);
      const auto first = static_cast<size_t>(part.begin);
      peaks[static_cast<size_t>(i)] =
          chunk_peak(row.subspan(first, static_cast<size_t>(part.end) - first), first);
    }
  };
  const auto highest = [&] {
    return *std::max_element(peaks.begin(), peaks.end(), [](const RowPeak& a, const RowPeak& b) {
      return a.value < b.value;  // the first of equals
    });
  };
  if (threads == nullptr || chunks == 1) {
    find_peaks({0, chunks});
    body(range_of(0, chunks), highest());
  } else {
    threads->run([&](int thread) {
      const Range mine = share_of(chunks, thread, threads->num_running());
      find_peaks(mine);
      threads->barrier();
      body(range_of(mine.begin, mine.end), highest());
    });
  }
  return highest();
}

}  // namespace medusa
