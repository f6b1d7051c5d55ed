#include "base/fingerprint.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/check.h"
#include "base/file.h"

namespace medusa {

struct Fingerprint::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Fingerprint::Fingerprint() : state_(std::make_unique<State>()) {
  MEDUSA_ASSERT(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Fingerprint::~Fingerprint() = default;

Fingerprint& Fingerprint::add(std::span<const uint8_t> bytes) {
  MEDUSA_ASSERT(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
  return *this;
}

Fingerprint& Fingerprint::add(std::string_view text) {
  return add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

Fingerprint& Fingerprint::add(int64_t number) { return add(fmt::format("{};", number)); }

std::string Fingerprint::digest() {
  uint8_t bytes[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  MEDUSA_ASSERT(EVP_DigestFinal_ex(state_->context, bytes, &length) == 1);
  std::string text = "sha256:";
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::string fingerprint_file(const std::filesystem::path& path) {
  return Fingerprint().add(MappedFile(path).bytes()).digest();
}

std::string fingerprint_text(std::string_view text) { return Fingerprint().add(text).digest(); }

std::string short_fingerprint(std::string_view fingerprint) {
  constexpr size_t kShown = sizeof("sha256:") - 1 + 12;
  if (fingerprint.size() <= kShown) return std::string(fingerprint);
  return std::string(fingerprint.substr(0, kShown)) + "…";
}

}  // namespace medusa
