#include "infer/grammar/string_formats.h"

#include <fmt/format.h>

#include <map>

namespace medusa {
namespace {

std::string anchored(const std::string& inside) { return "^(" + inside + ")$"; }

/// RFC 3339 §5.6, and §5.7 for the days of a month.
std::string date() {
  const std::string year = "[1-9]\\d{3}";
  const std::string leap_year =
      "([1-9]\\d(0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)";
  return "(" + year +
         "-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|"
         "02-(0[1-9]|1\\d|2[0-8]))|" +
         leap_year + "-02-29)";
}

std::string time() {
  const std::string hours_minutes = "([01]\\d|2[0-3]):[0-5]\\d";
  return hours_minutes + ":[0-5]\\d(\\.\\d{1,9})?(Z|[+-]" + hours_minutes + ")";
}

/// RFC 3339 appendix A: a unit follows the next larger one.
std::string duration() {
  const std::string of_time = "T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S)";
  const std::string of_date = "(\\d+Y(\\d+M(\\d+D)?)?|\\d+M(\\d+D)?|\\d+D)";
  return "P(" + of_date + "(" + of_time + ")?|" + of_time + "|\\d+W)";
}

/// RFC 1123 §2.1: labels of at most 63 letters, 253 in all. These have 8 * 30 + 7 at most.
std::string hostname() {
  const std::string label = "[A-Za-z0-9]([A-Za-z0-9-]{0,28}[A-Za-z0-9])?";
  return label + "(\\." + label + "){0,7}";
}

/// RFC 5321 §4.1.2: a dot-string of at most 64 letters, and a domain.
std::string email() {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}";
  return atom + "(\\." + atom + "){0,2}@" + hostname();
}

std::string ipv4() {
  const std::string byte = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  return "(" + byte + "\\.){3}" + byte;
}

/// RFC 4291 §2.2, forms 1 and 2.
std::string ipv6() {
  const std::string part = "[0-9A-Fa-f]{1,4}";
  std::string out = "(" + part + ":){7}" + part + "|(" + part + ":){1,7}:|:(:" + part + "){1,7}|::";
  for (int before = 1; before <= 6; ++before)
    out += fmt::format("|({0}:){{{1}}}(:{0}){{1,{2}}}", part, before, 7 - before);
  return out;
}

/// RFC 3986 appendix A; hosts are names or IPv4.
struct Uri {
  const std::string encoded = "%[0-9A-Fa-f]{2}";
  const std::string pchar = "([A-Za-z0-9._~!$&'()*+,;=:@-]|" + encoded + ")";
  const std::string no_colon = "([A-Za-z0-9._~!$&'()*+,;=@-]|" + encoded + ")";
  const std::string host = "([A-Za-z0-9._~!$&'()*+,;=-]|" + encoded + ")*";
  const std::string user = "([A-Za-z0-9._~!$&'()*+,;=:-]|" + encoded + ")*";
  const std::string segments = "(/" + pchar + "*)*";
  const std::string authority = "(" + user + "@)?" + host + "(:\\d{0,5})?";
  const std::string absolute = "/(" + pchar + "+" + segments + ")?";
  const std::string behind =
      "(\\?(" + pchar + "|[/?])*)?(#(" + pchar + "|[/?])*)?";  // query and fragment

  std::string uri() const {
    return "[A-Za-z][A-Za-z0-9+.-]*:(//" + authority + segments + "|" + absolute + "|" + pchar +
           "+" + segments + ")?" + behind;
  }
  std::string relative() const {
    return "(//" + authority + segments + "|" + absolute + "|" + no_colon + "+" + segments + ")?" +
           behind;
  }
};

const std::map<std::string, std::string, std::less<>>& patterns() {
  static const std::map<std::string, std::string, std::less<>> all{
      {"date", anchored(date())},
      {"time", anchored(time())},
      {"date-time", anchored(date() + "T" + time())},
      {"duration", anchored(duration())},
      {"email", anchored(email())},
      {"hostname", anchored(hostname())},
      {"ipv4", anchored(ipv4())},
      {"ipv6", anchored(ipv6())},
      {"uri", anchored(Uri().uri())},
      {"uri-reference", anchored(Uri().uri() + "|" + Uri().relative())},
      {"uuid", "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"},
      {"json-pointer", "^(/([A-Za-z0-9 ._$-]|~[01])*)*$"},  // RFC 6901 §3
  };
  return all;
}

}  // namespace

std::string pattern_of_format(std::string_view format) {
  const auto found = patterns().find(format);
  return found == patterns().end() ? "" : found->second;
}

std::string formats_with_patterns() {
  std::string out;
  for (const auto& [name, pattern] : patterns()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace medusa
