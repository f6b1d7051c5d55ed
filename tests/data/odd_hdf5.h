// Shards as a stranger could make them, with libhdf5 itself: whole and finalized, but for a few of
// their attributes and datasets, which are something else.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace medusa::fixtures {

/// Writes something under a name into the root group, or nothing.
using OddPart = std::function<void(hid_t file, const char* name)>;

/// Which shard it would be.
enum class OddBase { Bfloat16, Int8, NoStates, NoSamples };

/// The small shard of the base with these parts in the place of its own, finalized.
/// @param parts  by name, "vocab_size" an attribute and "/tokens" a dataset. A name that no shard
///               has is added.
std::string odd_shard(const std::map<std::string, OddPart>& parts,
                      OddBase base = OddBase::Bfloat16);

/// The names that a shard with int8 states has, attributes first.
const std::vector<std::string>& shard_parts();

/// The bytes with a right checksum; as they are if they hold no checksum.
std::string finalized(std::string bytes);

using Shape = std::vector<hsize_t>;

/// Values are zeros if all of them are less than a MiB, else none are written. An empty shape is
/// one value.
OddPart attribute_of(hid_t type, const Shape& shape);
OddPart number_attribute(int64_t value);

/// How a dataset may be stored. Odd ones are many times what a list would be.
enum class OddLayout {
  Contiguous,
  Compact,
  Chunked,
  Compressed,    // shuffled, then deflated
  ForeignFilter  // by foreign_filter()
};
OddPart dataset_of(hid_t type, const Shape& shape, OddLayout layout = OddLayout::Contiguous);

/// int32 [5] that lie in another file from its first byte on.
OddPart external_storage(const std::string& file);
/// int32 [5] that are those of "/tokens" of another file.
OddPart virtual_dataset(const std::string& file);
OddPart external_link(const std::string& file);  // to its "/tokens"
OddPart soft_link(const std::string& target);    // a name of this file
OddPart hard_link(const std::string& target);    // one of shard_parts() that is written before
OddPart group();
OddPart named_type();
OddPart nothing();

hid_t text_type(size_t bytes);  // fixed length; lives as long as the program
hid_t variable_text_type();

/// How often the filter of ForeignFilter ran: a stranger's code, in life.
int foreign_filter_calls();

}  // namespace medusa::fixtures
