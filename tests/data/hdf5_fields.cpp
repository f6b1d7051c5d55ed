#include "tests/data/hdf5_fields.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"
#include "tests/data/odd_hdf5.h"

namespace medusa::fixtures {
namespace {

constexpr size_t kMostFields = 20'000;

/// Walks through the file as it was written; where a file is odd the walk ends earlier.
class FieldWalk {
 public:
  explicit FieldWalk(const std::string& file) : file_(file) {}

  std::vector<Hdf5Field> run() {
    size_t at = 8;
    for (const size_t bytes : {1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 4}) add("superblock", at, bytes);
    for (const char* word : {"base", "free", "end", "driver", "name", "root"})
      add_one(std::string("superblock ") + word, at, 8);
    header(number(64, 8), "root");
    return std::move(fields_);
  }

 private:
  /// A number of the file; 0 outside.
  uint64_t number(size_t at, size_t bytes) const {
    uint64_t value = 0;
    if (at <= file_.size() && bytes <= file_.size() - at) std::memcpy(&value, &file_[at], bytes);
    return value;
  }

  void add_one(const std::string& name, size_t& at, size_t bytes) {
    if (at <= file_.size() && bytes <= file_.size() - at && fields_.size() < kMostFields)
      fields_.push_back({name, at, bytes});
    at += bytes;
  }
  /// Numbered: "superblock 3".
  void add(const std::string& name, size_t& at, size_t bytes) {
    add_one(name + " " + std::to_string(numbers_[name]++), at, bytes);
  }

  void header(uint64_t address, const std::string& name) {
    size_t at = address;
    for (const auto& [word, bytes] :
         {std::pair{"version", 1}, {"reserved", 1}, {"messages", 2}, {"names", 4}, {"size", 4}})
      add_one(name + " header " + word, at, static_cast<size_t>(bytes));
    at += 4;
    std::vector<std::pair<size_t, uint64_t>> pieces{{at, number(address + 8, 4)}};
    for (size_t i = 0; i < pieces.size() && pieces.size() < 20; ++i)
      for (size_t next = pieces[i].first; next < pieces[i].first + pieces[i].second &&
                                          next < file_.size() && fields_.size() < kMostFields;) {
        const uint64_t type = number(next, 2);
        if (type == 0x10) pieces.emplace_back(number(next + 8, 8), number(next + 16, 8));
        next = message(next, type, name);
      }
  }

  size_t message(size_t at, uint64_t type, const std::string& owner) {
    static const std::map<uint64_t, std::string> names{
        {0x00, "nothing"}, {0x01, "shape"},        {0x03, "type"},        {0x05, "fill"},
        {0x08, "layout"},  {0x10, "continuation"}, {0x11, "symbol table"}};
    const size_t size = number(at + 2, 2), body = at + 8;
    const bool attribute = type == 0x0C;
    const std::string word = attribute              ? attribute_name(body)
                             : names.contains(type) ? owner + " " + names.at(type)
                                                    : owner + " message";
    add_one(word + " message type", at, 2);
    add_one(word + " message size", at, 2);
    add_one(word + " message flags", at, 1);
    size_t next = body;
    if (attribute)
      attribute_body(next, word);
    else
      known_body(next, type, word, size);
    if (type == 0x11) symbol_table(number(body, 8), number(body + 8, 8));
    return body + size;
  }

  void known_body(size_t& at, uint64_t type, const std::string& word, size_t size) {
    const size_t end = at + size;
    if (type == 0x01) return shape(at, word);
    if (type == 0x03) return element_type(at, word);
    if (type == 0x08) {
      add_one(word + " version", at, 1);
      add_one(word + " class", at, 1);
      add_one(word + " address", at, 8);
      return add_one(word + " size", at, 8);
    }
    while (at < std::min(end, file_.size()) && type != 0)
      add(word, at, std::min<size_t>(8, end - at));
  }

  void shape(size_t at, const std::string& word) {
    const size_t dimensions = number(at + 1, 1);
    for (const char* field : {"version", "dimensions", "flags"}) add_one(word + " " + field, at, 1);
    at += 5;
    for (size_t i = 0; i < std::min<size_t>(2 * dimensions, 8); ++i) add(word, at, 8);
  }

  void element_type(size_t at, const std::string& word) {
    for (const char* field : {"class", "flags 0", "flags 1", "flags 2"})
      add_one(word + " " + field, at, 1);
    add_one(word + " size", at, 4);
    for (int i = 0; i < 4; ++i) add(word, at, 2);
  }

  std::string attribute_name(size_t body) const {
    const size_t begin = std::min(body + 8, file_.size());
    return std::string(file_.c_str() + begin).substr(0, 64);
  }

  void attribute_body(size_t at, const std::string& word) {
    const auto padded = [&](size_t place) { return (number(place, 2) + 7) / 8 * 8; };
    const size_t name = at + 8, type = name + padded(at + 2), space = type + padded(at + 4);
    size_t value = space + padded(at + 6);
    for (const auto& [field, bytes] : {std::pair{"version", 1},
                                       {"reserved", 1},
                                       {"name size", 2},
                                       {"type size", 2},
                                       {"shape size", 2}})
      add_one(word + " " + field, at, static_cast<size_t>(bytes));
    add_one(word + " name", at, 1);
    element_type(type, word + " type");
    shape(space, word + " shape");
    add_one(word + " value", value, 8);
  }

  void symbol_table(size_t tree, size_t heap) {
    const size_t leaves = number(tree + 6, 2), names = number(heap + 24, 8);
    for (const auto& [word, bytes] : {std::pair{"signature", 4},
                                      {"kind", 1},
                                      {"level", 1},
                                      {"used", 2},
                                      {"left", 8},
                                      {"right", 8}})
      add_one(std::string("tree ") + word, tree, static_cast<size_t>(bytes));
    for (const auto& [word, bytes] :
         {std::pair{"signature", 4}, {"version", 4}, {"size", 8}, {"free", 8}, {"address", 8}})
      add_one(std::string("heap ") + word, heap, static_cast<size_t>(bytes));
    size_t heap_names = names;
    for (int i = 0; i < 8; ++i) add("names", heap_names, 8);
    for (size_t i = 0; i < std::min<size_t>(leaves, 8); ++i) {
      add("tree key", tree, 8);
      const uint64_t address = number(tree, 8);
      add("tree child", tree, 8);
      leaf(address, names);
    }
  }

  void leaf(size_t at, size_t names) {
    const size_t count = number(at + 6, 2);
    for (const auto& [word, bytes] :
         {std::pair{"signature", 4}, {"version", 1}, {"reserved", 1}, {"count", 2}})
      add_one(std::string("leaf ") + word, at, static_cast<size_t>(bytes));
    for (size_t i = 0; i < std::min<size_t>(count, 32) && at < file_.size(); ++i) {
      const size_t text = std::min(names + number(at, 8), file_.size());
      const std::string name = "/" + std::string(file_.c_str() + text).substr(0, 64);
      const uint64_t address = number(at + 8, 8);
      for (const auto& [word, bytes] :
           {std::pair{"name", 8}, {"header", 8}, {"kind", 4}, {"reserved", 4}, {"cached", 8}})
        add_one(name + " link " + word, at, static_cast<size_t>(bytes));
      at += 8;
      if (address < file_.size()) header(address, name);
    }
  }

  const std::string& file_;
  std::vector<Hdf5Field> fields_;
  std::map<std::string, int> numbers_;  // how many fields of a numbered name there are
};

}  // namespace

std::vector<Hdf5Field> hdf5_fields(const std::string& file) { return FieldWalk(file).run(); }

void set_field(std::string& file, const Hdf5Field& field, uint64_t value) {
  std::memcpy(&file[field.at], &value, field.bytes);
}

uint64_t get_field(const std::string& file, const Hdf5Field& field) {
  uint64_t value = 0;
  std::memcpy(&value, &file[field.at], field.bytes);
  return value;
}

std::string with_field(std::string file, const std::string& name, uint64_t value) {
  const auto fields = hdf5_fields(file);
  const auto field = std::ranges::find(fields, name, &Hdf5Field::name);
  MEDUSA_ASSERT(field != fields.end(), name);
  set_field(file, *field, value);
  return finalized(std::move(file));
}

}  // namespace medusa::fixtures
