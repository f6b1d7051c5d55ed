#include "data/dataset/hdf5_writer.h"

#include <hdf5.h>

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace medusa {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

/// Closes an HDF5 id at the end of its scope.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  // NOLINTNEXTLINE(google-explicit-constructor): passed to HDF5 as ids are
  operator hid_t() const { return id_; }

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

}  // namespace medusa
