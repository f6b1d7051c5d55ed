// Medians and quantiles of a few samples.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace medusa {

/// Of sorted values, straight lines between neighbors.
/// @param values  at least one.
/// @param q       from 0 to 1; 0.5: the median.
double quantile(std::vector<double> values, double q);

double median(std::vector<double> values);

/// The place of the value in the middle; of an even number the larger of the two in the middle.
/// Unlike the median it is a sample that was really taken, so its parts add up to it.
/// @param values  at least one.
size_t middle_of(std::span<const double> values);

}  // namespace medusa
