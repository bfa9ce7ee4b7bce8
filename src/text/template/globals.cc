#include "globals.h"

#include <ctime>
#include <string>
#include <utility>

#include "format.h"
#include "interpreter.h"
#include "methods.h"

namespace omnibus::jinja {
namespace {

// Jinja2's sandbox has the same limit.
constexpr size_t kMaxRange = 100'000;

Value make_range(Interpreter& in, const CallArgs& args) {
  (void)in;
  if (!args.keyword.empty()) fail("range() takes no keyword arguments");
  const size_t n = args.positional.size();
  if (n < 1 || n > 3) fail("range expected 1 to 3 arguments, got " + std::to_string(n));
  Integer parts[3] = {0, 0, 1};
  for (size_t i = 0; i < n; ++i) {
    const Value& value = args.positional[i];
    if (!value.is_integral())
      fail(std::string("'") + type_name(value) + "' object cannot be interpreted as an integer");
    if (value.integer() > (Integer{1} << 62) || value.integer() < -(Integer{1} << 62)) fail("Range too big.");
    parts[n == 1 ? 1 : i] = value.integer();
  }
  if (parts[2] == 0) fail("range() arg 3 must not be zero");
  RangeObject* range = in.heap().make<RangeObject>(parts[0], parts[1], parts[2]);
  if (range->length > kMaxRange)
    fail("Range too big. The sandbox blocks ranges larger than " + std::to_string(kMaxRange) + ".");
  return range;
}

Dict* dict_of(Interpreter& in, const char* name, const CallArgs& args) {
  if (args.positional.size() > 1)
    fail(std::string(name) + " expected at most 1 argument, got " + std::to_string(args.positional.size()));
  Dict* dict = in.heap().make<Dict>();
  if (!args.positional.empty()) fill_dict(in, *dict, args.positional[0]);
  for (const auto& [key, value] : args.keyword)
    dict->set(make_text(key, true, &in.budget()), value, in.budget());
  return dict;
}

Value make_dict(Interpreter& in, const CallArgs& args) { return dict_of(in, "dict", args); }

Value make_namespace(Interpreter& in, const CallArgs& args) {
  return in.heap().make<NamespaceObject>(dict_of(in, "namespace", args));
}

Value make_joiner(Interpreter& in, const CallArgs& args) {
  const BoundArgs bound("joiner", args, {"sep"});
  return in.heap().make<JoinerObject>(bound.value_or(0, make_text(", ", true, &in.budget())));
}

Value make_cycler(Interpreter& in, const CallArgs& args) {
  if (!args.keyword.empty()) fail("cycler() takes no keyword arguments");
  if (args.positional.empty()) fail("at least one item has to be provided");
  return in.heap().make<CyclerObject>(args.positional);
}

Value raise_exception(Interpreter& in, const CallArgs& args) {
  const BoundArgs bound("raise_exception", args, {"message"}, 1);
  throw TemplateError(TemplateError::Kind::kRaised, std::string(to_text(bound.at(0), in.heap())->view()));
}

// Python's strftime of a time without zone: %f is microseconds, %z and %Z are empty.
std::string python_strftime(const std::string& format, const std::tm& time) {
  std::string native;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 >= format.size()) {
      native.push_back(format[i]);
      continue;
    }
    const char c = format[++i];
    if (c == 'f')
      native += "000000";
    else if (c != 'z' && c != 'Z')
      native.append({'%', c});
  }
  if (native.empty()) return native;
  // glibc pads "%1000d"; what does not fit is refused below.
  std::string out(1024 + 8 * native.size(), '\0');
  native.push_back('.');  // so that an empty result is not taken for a failure
  const size_t n = std::strftime(out.data(), out.size(), native.c_str(), &time);
  if (n == 0) fail("strftime_now: the result is too long");
  out.resize(n - 1);
  return out;
}

Value strftime_now(Interpreter& in, const CallArgs& args) {
  const BoundArgs bound("strftime_now", args, {"format"}, 1);
  const TextPtr format = bound.text(0);
  if (format->size() > 1024) fail("strftime_now: the format is too long");
  if (format->view().find('\0') != std::string_view::npos) fail("strftime_now: embedded null character");
  const auto seconds = static_cast<std::time_t>(in.options().now_seconds);
  std::tm time{};
  if (localtime_r(&seconds, &time) == nullptr) fail("strftime_now: no such time");
  const bool trusted = format->empty() || (format->runs().size() == 1 && format->runs()[0].trusted);
  return make_text(python_strftime(std::string(format->view()), time), trusted, &in.budget());
}

constexpr std::pair<const char*, FunctionBody> kGlobals[] = {
    {"range", make_range},          {"dict", make_dict},     {"namespace", make_namespace},
    {"joiner", make_joiner},        {"cycler", make_cycler}, {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

FunctionBody find_global(std::string_view name) {
  for (const auto& [known, body] : kGlobals)
    if (name == known) return body;
  return nullptr;
}

const char* global_name(std::string_view name) {
  for (const auto& [known, body] : kGlobals)
    if (name == known) return known;
  return "";
}

}  // namespace omnibus::jinja
