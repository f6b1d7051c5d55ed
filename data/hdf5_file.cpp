#include "data/hdf5_file.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace medusa {
namespace {

static_assert(std::endian::native == std::endian::little, "hidden states are read as they lie");

/// Closes an HDF5 id at the end of its scope.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// HDF5 prints its whole call stack on every error unless told not to.
void silence_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

/// The innermost message of HDF5's error stack.
std::string hdf5_reason() {
  std::string reason = "unknown HDF5 error";
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned level, const H5E_error2_t* error, void* text) -> herr_t {
        if (level == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
        return 0;
      },
      &reason);
  return reason;
}

/// In memory nothing but a bug of ours can fail.
template <typename Result>
void require(Result result, const char* name) {
  MEDUSA_ASSERT(result >= 0, name, hdf5_reason());
}

/// Fixed-length UTF-8. HDF5 has no texts of length 0, so the empty one is stored as one zero byte.
hid_t make_text_type(size_t length) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, std::max<size_t>(length, 1));
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

std::string strip_padding(const char* text, size_t length) { return {text, strnlen(text, length)}; }

}  // namespace

struct Hdf5Builder::Impl {
  Handle file;

  static hid_t create() {
    silence_hdf5();
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    constexpr size_t kGrowth = 1 << 16;  // bytes
    require(H5Pset_fapl_core(access, kGrowth, /*backing_store=*/false), "core driver");
    require(H5Pset_obj_track_times(creation, false), "track_times");
    return H5Fcreate("medusa-in-memory", H5F_ACC_TRUNC, creation, access);
  }

  void attribute(const char* name, hid_t type, const void* value) {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle handle(H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    require(hid_t{handle}, name);
    require(H5Awrite(handle, type, value), name);
  }

  void dataset(const char* name, hid_t type, std::span<const hsize_t> shape, const void* values) {
    const Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
                       H5Sclose);
    const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    require(H5Pset_obj_track_times(creation, false), name);
    const Handle handle(H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
                        H5Dclose);
    require(hid_t{handle}, name);
    if (shape[0] > 0) require(H5Dwrite(handle, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), name);
  }

  template <typename T>
  void matrix(const char* name, hid_t type, std::span<const T> values, int64_t columns) {
    const auto width = static_cast<size_t>(columns);
    MEDUSA_ASSERT(columns > 0 && values.size() % width == 0, name, values.size(), columns);
    dataset(name, type, {{values.size() / width, width}}, values.data());
  }
};

Hdf5Builder::Hdf5Builder() : impl_(new Impl{Handle(Impl::create(), H5Fclose)}) {
  require(hid_t{impl_->file}, "file");
}

Hdf5Builder::~Hdf5Builder() = default;

void Hdf5Builder::text(const char* name, std::string_view value) {
  const Handle type(make_text_type(value.size()), H5Tclose);
  const std::string terminated(value);  // HDF5 reads one byte even of the empty text
  impl_->attribute(name, type, terminated.c_str());
}

void Hdf5Builder::number(const char* name, int64_t value) {
  impl_->attribute(name, H5T_STD_I64LE, &value);
}

void Hdf5Builder::number(const char* name, uint64_t value) {
  impl_->attribute(name, H5T_STD_U64LE, &value);
}

void Hdf5Builder::array(const char* name, std::span<const int32_t> values) {
  impl_->dataset(name, H5T_STD_I32LE, {{values.size()}}, values.data());
}

void Hdf5Builder::array(const char* name, std::span<const int64_t> values) {
  impl_->dataset(name, H5T_STD_I64LE, {{values.size()}}, values.data());
}

void Hdf5Builder::array(const char* name, std::span<const float> values) {
  impl_->dataset(name, H5T_IEEE_F32LE, {{values.size()}}, values.data());
}

void Hdf5Builder::array(const char* name, std::span<const std::string> values) {
  size_t length = 1;
  for (const auto& each : values) length = std::max(length, each.size());
  std::string padded(values.size() * length, '\0');
  for (size_t i = 0; i < values.size(); ++i) values[i].copy(&padded[i * length], length);
  const Handle type(make_text_type(length), H5Tclose);
  impl_->dataset(name, type, {{values.size()}}, padded.data());
}

void Hdf5Builder::matrix(const char* name, std::span<const uint16_t> values, int64_t columns) {
  impl_->matrix(name, H5T_STD_U16LE, values, columns);
}

void Hdf5Builder::matrix(const char* name, std::span<const int8_t> values, int64_t columns) {
  impl_->matrix(name, H5T_STD_I8LE, values, columns);
}

std::string Hdf5Builder::bytes() {
  require(H5Fflush(impl_->file, H5F_SCOPE_GLOBAL), "flush");
  const ssize_t size = H5Fget_file_image(impl_->file, nullptr, 0);
  require(size, "size");
  std::string image(static_cast<size_t>(size), '\0');
  require(H5Fget_file_image(impl_->file, image.data(), image.size()), "image");
  return image;
}

struct Hdf5Reader::Impl {
  std::filesystem::path path;
  Handle file;

  static hid_t open(const std::filesystem::path& path) {
    silence_hdf5();
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    // A shard never changes once it has its name; locks only fail on network file systems.
    H5Pset_file_locking(access, /*use_file_locking=*/false, /*ignore_when_disabled=*/true);
    return H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  }

  [[noreturn]] void fail(const char* name, const char* expected) const {
    throw UserError(fmt::format(
        "{}: '{}' is missing or is not {}, as data/FORMAT.md says; distill the dataset again",
        path.string(), name, expected));
  }

  template <typename T>
  T integer(const char* name, hid_t stored, hid_t native, const char* expected) const {
    const Handle handle(H5Aopen(file, name, H5P_DEFAULT), H5Aclose);
    if (!handle.valid()) fail(name, expected);
    const Handle type(H5Aget_type(handle), H5Tclose);
    T value = 0;
    if (H5Tequal(type, stored) <= 0 || H5Aread(handle, native, &value) < 0) fail(name, expected);
    return value;
  }

  /// Opens a dataset and checks its type and number of dimensions.
  std::vector<hsize_t> shape_of(hid_t dataset, hid_t stored, int dimensions, const char* name,
                                const char* expected) const {
    if (dataset < 0) fail(name, expected);
    const Handle type(H5Dget_type(dataset), H5Tclose);
    const Handle space(H5Dget_space(dataset), H5Sclose);
    if (stored >= 0 && H5Tequal(type, stored) <= 0) fail(name, expected);
    if (H5Sget_simple_extent_ndims(space) != dimensions) fail(name, expected);
    std::vector<hsize_t> shape(static_cast<size_t>(dimensions));
    H5Sget_simple_extent_dims(space, shape.data(), nullptr);
    return shape;
  }

  void read(hid_t dataset, hid_t type, void* out, const char* name, const char* expected) const {
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0) fail(name, expected);
  }

  template <typename T>
  std::vector<T> array(const char* name, hid_t stored, const char* expected) const {
    const Handle handle(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
    std::vector<T> values(shape_of(handle, stored, 1, name, expected)[0]);
    if (!values.empty()) read(handle, stored, values.data(), name, expected);
    return values;
  }

  Block matrix(const char* name, hid_t stored, const char* expected) const {
    const Handle handle(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
    const auto shape = shape_of(handle, stored, 2, name, expected);
    Block block{0, static_cast<int64_t>(shape[0]), static_cast<int64_t>(shape[1])};
    if (block.rows == 0) return block;
    const haddr_t offset = H5Dget_offset(handle);
    if (offset == HADDR_UNDEF) fail(name, expected);
    block.offset = static_cast<int64_t>(offset);
    return block;
  }
};

Hdf5Reader::Hdf5Reader(const std::filesystem::path& path)
    : impl_(new Impl{path, Handle(Impl::open(path), H5Fclose)}) {
  if (!impl_->file.valid())
    throw UserError(fmt::format("{}: cannot be read as HDF5 ({}); check the path, or distill again",
                                path.string(), hdf5_reason()));
}

Hdf5Reader::~Hdf5Reader() = default;

std::string Hdf5Reader::text(const char* name) const {
  constexpr const char* kExpected = "a fixed-length text";
  const Handle handle(H5Aopen(impl_->file, name, H5P_DEFAULT), H5Aclose);
  if (!handle.valid()) impl_->fail(name, kExpected);
  const Handle type(H5Aget_type(handle), H5Tclose);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0)
    impl_->fail(name, kExpected);
  std::string value(H5Tget_size(type), '\0');
  if (H5Aread(handle, type, value.data()) < 0) impl_->fail(name, kExpected);
  return strip_padding(value.data(), value.size());
}

int64_t Hdf5Reader::number(const char* name) const {
  return impl_->integer<int64_t>(name, H5T_STD_I64LE, H5T_NATIVE_INT64, "an int64");
}

uint64_t Hdf5Reader::unsigned_number(const char* name) const {
  return impl_->integer<uint64_t>(name, H5T_STD_U64LE, H5T_NATIVE_UINT64, "a uint64");
}

std::vector<int32_t> Hdf5Reader::int32_array(const char* name) const {
  return impl_->array<int32_t>(name, H5T_STD_I32LE, "a list of int32");
}

std::vector<int64_t> Hdf5Reader::int64_array(const char* name) const {
  return impl_->array<int64_t>(name, H5T_STD_I64LE, "a list of int64");
}

std::vector<float> Hdf5Reader::float_array(const char* name) const {
  return impl_->array<float>(name, H5T_IEEE_F32LE, "a list of float32");
}

std::vector<std::string> Hdf5Reader::text_array(const char* name) const {
  constexpr const char* kExpected = "a list of fixed-length texts";
  const Handle handle(H5Dopen2(impl_->file, name, H5P_DEFAULT), H5Dclose);
  const size_t count = impl_->shape_of(handle, H5I_INVALID_HID, 1, name, kExpected)[0];
  const Handle type(H5Dget_type(handle), H5Tclose);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0)
    impl_->fail(name, kExpected);
  const size_t length = H5Tget_size(type);
  std::string padded(count * length, '\0');
  if (count > 0) impl_->read(handle, type, padded.data(), name, kExpected);
  std::vector<std::string> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = strip_padding(&padded[i * length], length);
  return values;
}

Hdf5Reader::Block Hdf5Reader::uint16_matrix(const char* name) const {
  return impl_->matrix(name, H5T_STD_U16LE, "a contiguous matrix of uint16");
}

Hdf5Reader::Block Hdf5Reader::int8_matrix(const char* name) const {
  return impl_->matrix(name, H5T_STD_I8LE, "a contiguous matrix of int8");
}

bool is_hdf5(std::span<const uint8_t> bytes) {
  constexpr uint8_t kSignature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  return bytes.size() >= sizeof kSignature &&
         std::equal(std::begin(kSignature), std::end(kSignature), bytes.begin());
}

int64_t hdf5_expected_size(std::span<const uint8_t> bytes) {
  // Superblock of version 0 with 8-byte addresses (HDF5 file format specification, II.A.1).
  constexpr size_t kVersionAt = 8, kAddressBytesAt = 13, kEndOfFileAt = 40;
  if (!is_hdf5(bytes) || bytes.size() < kEndOfFileAt + 8) return 0;
  if (bytes[kVersionAt] != 0 || bytes[kAddressBytesAt] != 8) return 0;
  int64_t size = 0;
  std::memcpy(&size, &bytes[kEndOfFileAt], sizeof size);
  return size;
}

}  // namespace medusa
