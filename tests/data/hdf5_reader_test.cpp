// Our reader beside libhdf5, its twin, on what Hdf5Builder writes.
#include "data/dataset/hdf5_reader.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "data/dataset/hdf5_writer.h"

namespace medusa {
namespace {

/// A file in memory, opened with libhdf5.
class ReferenceFile {
 public:
  explicit ReferenceFile(const std::string& bytes) : bytes_(bytes) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 16, false);
    H5Pset_file_image(access, bytes_.data(), bytes_.size());
    file_ = H5Fopen("twin", H5F_ACC_RDONLY, access);
    H5Pclose(access);
    EXPECT_GE(file_, 0);
  }
  ~ReferenceFile() { H5Fclose(file_); }
  ReferenceFile(const ReferenceFile&) = delete;
  ReferenceFile& operator=(const ReferenceFile&) = delete;

  /// The bytes of all values, as they are stored, and the size of one.
  std::pair<std::string, size_t> attribute(const std::string& name) const {
    const hid_t attribute = H5Aopen(file_, name.c_str(), H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute);
    std::string values(H5Tget_size(type), '\0');
    EXPECT_GE(H5Aread(attribute, type, values.data()), 0) << name;
    H5Tclose(type);
    H5Aclose(attribute);
    return {values, values.size()};
  }
  std::pair<std::string, size_t> dataset(const std::string& name) const {
    const hid_t dataset = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const size_t size = H5Tget_size(type);
    std::string values(size * static_cast<size_t>(H5Sget_simple_extent_npoints(space)), '\0');
    if (!values.empty()) {
      EXPECT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << name;
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
    return {values, size};
  }

 private:
  std::string bytes_;
  hid_t file_ = -1;
};

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string stripped(const std::string& text) { return text.c_str(); }

/// What is left of a list of texts when each is cut at its first zero byte.
std::vector<std::string> split_texts(const std::pair<std::string, size_t>& stored) {
  std::vector<std::string> texts;
  for (size_t at = 0; at < stored.first.size(); at += stored.second)
    texts.push_back(stripped(stored.first.substr(at, stored.second)));
  return texts;
}

/// The file need not be there: what is read are the bytes given.
Hdf5Reader open_bytes(const std::string& file) { return {bytes_of(file), "there is no such file"}; }

TEST(Hdf5Reader, ReadsEveryAttributeAsLibhdf5Does) {
  for (const int count : {1, 2, 17, 100, 400}) {  // many: the header continues elsewhere
    Hdf5Builder builder;
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      builder.text(("text " + number).c_str(), std::string(static_cast<size_t>(i % 50), 'x'));
      builder.number(("signed" + number).c_str(), int64_t{-1} << i % 63);
      if (i % 4 == 0) builder.number(("u" + number).c_str(), UINT64_MAX - static_cast<uint64_t>(i));
    }
    builder.text("long", std::string(60'000, 'y') + "–");
    const std::string file = builder.bytes();
    const Hdf5Reader reader = open_bytes(file);
    const ReferenceFile reference(file);
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      ASSERT_EQ(reader.text("text " + number),
                stripped(reference.attribute("text " + number).first));
      const int64_t value = reader.number("signed" + number);
      ASSERT_EQ(raw(std::vector{value}), reference.attribute("signed" + number).first);
      if (i % 4 == 0) {
        const uint64_t other = reader.unsigned_number("u" + number);
        ASSERT_EQ(raw(std::vector{other}), reference.attribute("u" + number).first);
      }
    }
    EXPECT_EQ(reader.text("long"), reference.attribute("long").first);
  }
}

TEST(Hdf5Reader, ReadsEveryListAsLibhdf5Does) {
  const Random random(11);
  for (const size_t size : {0, 1, 2, 31, 1000, 100'000}) {
    std::vector<int32_t> a(size);
    std::vector<int64_t> b(size);
    std::vector<float> c(size);
    std::vector<std::string> d(size);
    for (size_t i = 0; i < size; ++i) {
      a[i] = static_cast<int32_t>(random.bits(RandomUse::Init, static_cast<int64_t>(i)));
      b[i] = static_cast<int64_t>(random.bits(RandomUse::Init, -static_cast<int64_t>(i)));
      c[i] = 1 / static_cast<float>(a[i]);
      d[i] = std::string(i % 23, 'a') + (i % 3 == 0 ? "ü" : "");
    }
    Hdf5Builder builder;
    builder.array("/int32", a);
    builder.array("/int64", b);
    builder.array("/float", c);
    builder.array("/text", d);
    const std::string file = builder.bytes();
    const Hdf5Reader reader = open_bytes(file);
    const ReferenceFile reference(file);
    EXPECT_EQ(reader.length("/float"), static_cast<int64_t>(size));
    EXPECT_EQ(raw(reader.int32_list("/int32")), reference.dataset("/int32").first);
    EXPECT_EQ(raw(reader.int64_list("/int64")), reference.dataset("/int64").first);
    EXPECT_EQ(raw(reader.float_list("/float")), reference.dataset("/float").first);
    EXPECT_EQ(reader.text_list("/text"), split_texts(reference.dataset("/text")));
    EXPECT_EQ(reader.int32_list("/int32"), a);
    EXPECT_EQ(reader.text_list("/text"), d);
  }
}

TEST(Hdf5Reader, FindsEveryMatrixWhereLibhdf5ReadsIt) {
  for (const int64_t columns : {1, 3, 576}) {
    for (const int64_t rows : {0, 1, 5, 200}) {
      std::vector<uint16_t> wide(static_cast<size_t>(rows * columns));
      std::iota(wide.begin(), wide.end(), uint16_t{1});
      const std::vector<int8_t> narrow(wide.begin(), wide.end());
      Hdf5Builder builder;
      builder.matrix("/wide", wide, columns);
      builder.matrix("/narrow", narrow, columns);
      const std::string file = builder.bytes();
      const Hdf5Reader reader = open_bytes(file);
      const ReferenceFile reference(file);
      const auto a = reader.uint16_matrix("/wide"), b = reader.int8_matrix("/narrow");
      EXPECT_EQ(a.rows, rows);
      EXPECT_EQ(b.columns, columns);
      const auto cells = static_cast<size_t>(rows * columns);
      EXPECT_EQ(file.substr(static_cast<size_t>(a.offset), 2 * cells),
                reference.dataset("/wide").first);
      EXPECT_EQ(file.substr(static_cast<size_t>(b.offset), cells),
                reference.dataset("/narrow").first);
      EXPECT_EQ(a.offset > 0, rows > 0);
    }
  }
}

TEST(Hdf5Reader, FindsAsManyNamesAsItTakes) {
  Hdf5Builder builder;  // more than a leaf of the tree holds
  for (int i = 0; i < 60; ++i)
    builder.array(("/list " + std::to_string(i)).c_str(), std::vector<int64_t>{i});
  const std::string file = builder.bytes();
  const Hdf5Reader reader = open_bytes(file);
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(reader.int64_list("/list " + std::to_string(i)), std::vector<int64_t>{i});
}

TEST(Hdf5Reader, SaysWhatIsThereInTheOthersPlace) {
  Hdf5Builder builder;
  builder.text("name", "x");
  builder.array("/list", std::vector<int64_t>{1, 2});
  builder.matrix("/matrix", std::vector<int8_t>{1, 2}, 2);
  const std::string file = builder.bytes();
  const Hdf5Reader reader = open_bytes(file);
  const auto found = [](const auto& read) -> std::string {
    try {
      read();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      const std::string before = "there is no such file: ", after = ", expected an HDF5 file as";
      const size_t end = text.find(after);
      return text.substr(before.size(), end - before.size());
    }
    return "(no error)";
  };
  EXPECT_EQ(found([&] { reader.number("name"); }), "'name' is a fixed-length text, not an int64");
  EXPECT_EQ(found([&] { reader.text("list"); }), "'list', a fixed-length text, is missing");
  EXPECT_EQ(found([&] { reader.float_list("/list"); }),
            "'/list' is a list of 2 int64, not a list of float32");
  EXPECT_EQ(found([&] { reader.int64_list("/matrix"); }),
            "'/matrix' is a matrix [1, 2] of int8, not a list of int64");
  EXPECT_EQ(found([&] { reader.length("/matrix"); }),
            "'/matrix' is a matrix [1, 2] of int8, not a list");
  EXPECT_EQ(found([&] { reader.uint16_matrix("/matrix"); }),
            "'/matrix' is a matrix [1, 2] of int8, not a matrix of uint16");
  EXPECT_EQ(found([&] { open_bytes(file.substr(0, 90)); }),
            "its first block lies at 0 and has 96 bytes, the file ends at 90");
}

}  // namespace
}  // namespace medusa
