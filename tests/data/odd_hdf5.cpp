#include "tests/data/odd_hdf5.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/fingerprint.h"
#include "data/dataset/dataset_format.h"

namespace medusa::fixtures {
namespace {

namespace names = dataset_format;

/// An id of libhdf5 and what closes it.
class OddId {
 public:
  OddId(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {
    MEDUSA_ASSERT(id >= 0, "libhdf5 refused to make what a test needs");
  }
  ~OddId() { close_(id_); }
  OddId(const OddId&) = delete;
  OddId& operator=(const OddId&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void must(herr_t result) { MEDUSA_ASSERT(result >= 0, "libhdf5 refused to do what a test needs"); }

hid_t make_space(const Shape& shape) {
  return shape.empty() ? H5Screate(H5S_SCALAR)
                       : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
}

/// Zero bytes for all values; empty if there are too many, or none.
std::string zeros_for(hid_t type, const Shape& shape) {
  constexpr hsize_t kMost = 1 << 20;
  hsize_t bytes = H5Tget_size(type);
  for (const hsize_t size : shape) bytes = size > kMost ? kMost : bytes * size;
  return bytes >= kMost ? std::string() : std::string(bytes, '\0');
}

void write_attribute(hid_t file, const char* name, hid_t type, const Shape& shape,
                     const void* values) {
  const OddId space(make_space(shape), H5Sclose);
  const OddId attribute(H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (values != nullptr) must(H5Awrite(attribute, type, values));
}

void write_dataset(hid_t file, const char* name, hid_t type, const Shape& shape, hid_t creation,
                   const void* values) {
  const OddId space(make_space(shape), H5Sclose);
  must(H5Pset_obj_track_times(creation, false));
  const OddId dataset(H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
                      H5Dclose);
  if (values != nullptr) must(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
}

OddPart text_attribute(const std::string& value) {
  return [value](hid_t file, const char* name) {
    write_attribute(file, name, text_type(value.size()), {}, value.data());
  };
}

template <typename T>
OddPart list_dataset(hid_t type, const std::vector<T>& values, const Shape& shape) {
  return [=](hid_t file, const char* name) {
    const OddId creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    write_dataset(file, name, type, shape, creation, values.empty() ? nullptr : values.data());
  };
}
template <typename T>
OddPart list_dataset(hid_t type, const std::vector<T>& values) {
  return list_dataset(type, values, {values.size()});
}

/// Of two samples: 1 17 30 | 2 41 and 5 | 2 60 9, four states of three numbers.
std::map<std::string, OddPart> own_parts(OddBase base) {
  const bool samples = base != OddBase::NoSamples, states = base != OddBase::NoStates;
  const bool rounded = base == OddBase::Int8;
  using Int64s = std::vector<int64_t>;
  std::map<std::string, OddPart> parts{
      {names::kFormatAttribute, text_attribute(std::string(names::kFormat))},
      {names::kVersionAttribute, number_attribute(rounded ? 2 : 1)},
      {names::kBackboneAttribute, text_attribute("sha256:b0")},
      {names::kTokenizerAttribute, text_attribute("sha256:70")},
      {names::kPromptsAttribute, text_attribute("sha256:99")},
      {names::kSamplingAttribute, text_attribute("temperature: 0.7\n")},
      {names::kSeedAttribute, attribute_of(H5T_STD_U64LE, {})},
      {names::kVocabSizeAttribute, number_attribute(100)},
      {names::kHiddenSizeAttribute, number_attribute(states ? 3 : 0)},
      {names::kFirstAttribute, number_attribute(0)},
      {names::kCountAttribute, number_attribute(2)},
      {names::kTotalAttribute, number_attribute(2)},
      {names::kLastAttribute, number_attribute(1)},
      {names::kTokens,
       list_dataset<int32_t>(
           H5T_STD_I32LE,
           samples ? std::vector<int32_t>{1, 17, 30, 2, 41, 5, 2, 60, 9} : std::vector<int32_t>{})},
      {names::kOffsets, list_dataset(H5T_STD_I64LE, samples ? Int64s{0, 5, 9} : Int64s{0})},
      {names::kAnswerStart, list_dataset(H5T_STD_I64LE, samples ? Int64s{3, 2} : Int64s{})},
      {names::kPromptId,
       list_dataset(text_type(7), std::vector<char>(samples ? 14 : 0, 'p'), {samples ? 2U : 0U})}};
  if (!states) return parts;
  const hsize_t rows = samples ? 4 : 0;
  parts[names::kHiddenOffsets] = list_dataset(H5T_STD_I64LE, samples ? Int64s{0, 2, 4} : Int64s{0});
  parts[names::kHidden] = dataset_of(rounded ? H5T_STD_I8LE : H5T_STD_U16LE, {rows, 3});
  if (!rounded) return parts;
  parts[names::kHiddenScale] = dataset_of(H5T_IEEE_F32LE, {rows});
  parts[names::kStatesAttribute] = text_attribute("int8");
  parts[names::kStatesBudgetAttribute] = number_attribute(0);
  return parts;
}

constexpr H5Z_filter_t kForeignFilter = 511;  // of those that anybody may use
int filter_calls = 0;

size_t run_foreign_filter(unsigned, size_t, const unsigned*, size_t bytes, size_t*, void**) {
  ++filter_calls;
  return bytes;
}

void set_layout(hid_t creation, OddLayout layout, const Shape& shape) {
  if (layout == OddLayout::Compact) must(H5Pset_layout(creation, H5D_COMPACT));
  if (layout == OddLayout::Contiguous || layout == OddLayout::Compact) return;
  Shape chunk = shape;
  for (hsize_t& size : chunk) size = std::clamp<hsize_t>(size, 1, 4);
  must(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()));
  if (layout == OddLayout::Compressed) {
    must(H5Pset_shuffle(creation));
    must(H5Pset_deflate(creation, 6));
  }
  if (layout != OddLayout::ForeignFilter) return;
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, kForeignFilter, 1,       1,
                            "foreign",        nullptr,        nullptr, run_foreign_filter};
  must(H5Zregister(&filter));
  must(H5Pset_filter(creation, kForeignFilter, H5Z_FLAG_MANDATORY, 0, nullptr));
}

}  // namespace

const std::vector<std::string>& shard_parts() {
  static const std::vector<std::string> parts{names::kFormatAttribute,
                                              names::kVersionAttribute,
                                              names::kBackboneAttribute,
                                              names::kTokenizerAttribute,
                                              names::kPromptsAttribute,
                                              names::kSamplingAttribute,
                                              names::kSeedAttribute,
                                              names::kVocabSizeAttribute,
                                              names::kHiddenSizeAttribute,
                                              names::kStatesAttribute,
                                              names::kStatesBudgetAttribute,
                                              names::kFirstAttribute,
                                              names::kCountAttribute,
                                              names::kTotalAttribute,
                                              names::kLastAttribute,
                                              names::kTokens,
                                              names::kOffsets,
                                              names::kAnswerStart,
                                              names::kPromptId,
                                              names::kHidden,
                                              names::kHiddenScale,
                                              names::kHiddenOffsets};
  return parts;
}

std::string odd_shard(const std::map<std::string, OddPart>& odd, OddBase base) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const OddId access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  must(H5Pset_fapl_core(access, 1 << 16, /*backing_store=*/false));
  const OddId file(H5Fcreate("odd", H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose);
  text_attribute(std::string(names::kChecksumWord) + std::string(names::kChecksumDigits, '0'))(
      file, names::kChecksumAttribute);
  auto parts = own_parts(base);
  std::vector<std::string> order = shard_parts();
  for (const auto& [name, part] : odd) {
    if (std::ranges::find(order, name) == order.end()) order.push_back(name);
    parts[name] = part;
  }
  for (const std::string& name : order)
    if (const auto part = parts.find(name); part != parts.end()) part->second(file, name.c_str());
  must(H5Fflush(file, H5F_SCOPE_GLOBAL));
  std::string image(static_cast<size_t>(H5Fget_file_image(file, nullptr, 0)), '\0');
  MEDUSA_ASSERT(H5Fget_file_image(file, image.data(), image.size()) >= 0);
  return finalized(std::move(image));
}

std::string finalized(std::string bytes) {
  const size_t word = bytes.find(names::kChecksumWord);
  const size_t digits = word + names::kChecksumWord.size();
  if (word == std::string::npos || digits + names::kChecksumDigits > bytes.size()) return bytes;
  bytes.replace(digits, names::kChecksumDigits, names::kChecksumDigits, '0');
  const std::string digest = fingerprint_text(bytes);
  return bytes.replace(digits, names::kChecksumDigits, digest,
                       digest.size() - names::kChecksumDigits, names::kChecksumDigits);
}

OddPart attribute_of(hid_t type, const Shape& shape) {
  return [=](hid_t file, const char* name) {
    const std::string zeros = zeros_for(type, shape);
    const bool plain = H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) == 0;
    write_attribute(file, name, type, shape, plain && !zeros.empty() ? zeros.data() : nullptr);
  };
}

OddPart number_attribute(int64_t value) {
  return [value](hid_t file, const char* name) {
    write_attribute(file, name, H5T_STD_I64LE, {}, &value);
  };
}

OddPart dataset_of(hid_t type, const Shape& shape, OddLayout layout) {
  return [=](hid_t file, const char* name) {
    const OddId creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    if (!shape.empty()) set_layout(creation, layout, shape);
    const std::string zeros = zeros_for(type, shape);
    const bool plain = H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) == 0;
    write_dataset(file, name, type, shape, creation,
                  plain && !zeros.empty() ? zeros.data() : nullptr);
  };
}

OddPart external_storage(const std::string& other) {
  return [other](hid_t file, const char* name) {
    const OddId creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    must(H5Pset_external(creation, other.c_str(), 0, H5F_UNLIMITED));
    write_dataset(file, name, H5T_STD_I32LE, {5}, creation, nullptr);
  };
}

OddPart virtual_dataset(const std::string& other) {
  return [other](hid_t file, const char* name) {
    const Shape shape{5};
    const OddId creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose),
        space(make_space(shape), H5Sclose);
    must(H5Pset_virtual(creation, space, other.c_str(), names::kTokens, space));
    write_dataset(file, name, H5T_STD_I32LE, shape, creation, nullptr);
  };
}

OddPart external_link(const std::string& other) {
  return [other](hid_t file, const char* name) {
    must(H5Lcreate_external(other.c_str(), names::kTokens, file, name, H5P_DEFAULT, H5P_DEFAULT));
  };
}

OddPart soft_link(const std::string& target) {
  return [target](hid_t file, const char* name) {
    must(H5Lcreate_soft(target.c_str(), file, name, H5P_DEFAULT, H5P_DEFAULT));
  };
}

OddPart hard_link(const std::string& target) {
  return [target](hid_t file, const char* name) {
    // Where the target is odd itself there may be none.
    (void)H5Lcreate_hard(file, target.c_str(), file, name, H5P_DEFAULT, H5P_DEFAULT);
  };
}

OddPart group() {
  return [](hid_t file, const char* name) {
    const OddId made(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  };
}

OddPart named_type() {
  return [](hid_t file, const char* name) {
    const OddId type(H5Tcopy(H5T_STD_I32LE), H5Tclose);
    must(H5Tcommit2(file, name, type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  };
}

OddPart nothing() {
  return [](hid_t, const char*) {};
}

hid_t text_type(size_t bytes) {
  static std::map<size_t, hid_t> types;
  const auto [type, added] = types.emplace(bytes, H5I_INVALID_HID);
  if (added) {
    type->second = H5Tcopy(H5T_C_S1);
    must(H5Tset_size(type->second, bytes));
    must(H5Tset_strpad(type->second, H5T_STR_NULLPAD));
    must(H5Tset_cset(type->second, H5T_CSET_UTF8));
  }
  return type->second;
}

hid_t variable_text_type() { return text_type(H5T_VARIABLE); }

int foreign_filter_calls() { return filter_calls; }

}  // namespace medusa::fixtures
