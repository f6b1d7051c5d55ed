#include "data/chat/jinja/number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "data/chat/jinja/error.h"
#include "data/chat/jinja/unicode.h"

namespace medusa::jinja {
namespace {

[[noreturn]] void overflow() {
  throw Error("an integer beyond 64 bits is computed", "smaller numbers");
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) {  // the one divisor whose quotient may not fit
    int64_t out = 0;
    if (__builtin_sub_overflow(int64_t{0}, a, &out)) overflow();
    return out;
  }
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// The sign of Python's remainder is the divisor's.
int64_t modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;  // where the machine traps on the smallest integer
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  int64_t out = 1;
  while (true) {
    if (exponent & 1)
      if (__builtin_mul_overflow(out, base, &out)) overflow();
    exponent >>= 1;
    if (exponent == 0) return out;
    if (__builtin_mul_overflow(base, base, &base)) overflow();
  }
}

Value calculate_ints(char operation, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (operation) {
    case '+':
      if (__builtin_add_overflow(a, b, &out)) overflow();
      return out;
    case '-':
      if (__builtin_sub_overflow(a, b, &out)) overflow();
      return out;
    case '*':
      if (__builtin_mul_overflow(a, b, &out)) overflow();
      return out;
    case '/':
      return static_cast<double>(a) / static_cast<double>(b);
    case '%':
      return modulo(a, b);
    case '^':
      return power(a, b);
    default:
      return floor_divide(a, b);
  }
}

Value calculate_floats(char operation, double a, double b) {
  switch (operation) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    case '%':
      return floor_modulo(a, b);
    case '^':
      return std::pow(a, b);
    default:
      return std::floor(a / b);
  }
}

/// Without white space around it and the underscores between its digits.
std::string digits_of(std::string_view text) {
  const std::string_view stripped = strip(text, std::nullopt, Side::Both);
  std::string out;
  for (size_t i = 0; i < stripped.size(); ++i) {
    const bool between = i > 0 && i + 1 < stripped.size() && std::isdigit(stripped[i - 1]) &&
                         std::isdigit(stripped[i + 1]);
    if (stripped[i] != '_' || !between) out += stripped[i];
  }
  if (out.starts_with('+') && !out.starts_with("+-")) out.erase(0, 1);
  return out;
}

}  // namespace

std::optional<int64_t> as_int(const Value& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
  if (const auto* i = std::get_if<int64_t>(&value)) return *i;
  return std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const auto i = as_int(value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

std::string print_float(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::optional<double> parse_float(std::string_view text) {
  const std::string digits = digits_of(text);
  double number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number);
  if (digits.empty() || read.ec != std::errc() || read.ptr != end ||
      digits.find('(') != std::string::npos)  // from_chars takes "nan(…)", Python does not
    return std::nullopt;
  return number;
}

std::optional<int64_t> parse_int(std::string_view text) {
  const std::string digits = digits_of(text);
  int64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number);
  if (digits.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

Value calculate(char operation, const Value& a, const Value& b) {
  const bool divides = operation == '/' || operation == '%' || operation == 'd';
  if ((divides && *as_number(b) == 0) ||
      (operation == '^' && *as_number(a) == 0 && *as_number(b) < 0))
    throw Error("a number is divided by zero", "another divisor");
  const auto left = as_int(a);
  const auto right = as_int(b);
  if (left && right) return calculate_ints(operation, *left, *right);
  return calculate_floats(operation, *as_number(a), *as_number(b));
}

}  // namespace medusa::jinja
