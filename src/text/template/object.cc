#include "object.h"

#include "operators.h"

namespace omnibus::jinja {
namespace {

size_t range_length(Integer start, Integer stop, Integer step) {
  const Integer span = step > 0 ? stop - start : start - stop;
  if (span <= 0) return 0;
  const Integer stride = step > 0 ? step : -step;
  return static_cast<size_t>((span + stride - 1) / stride);
}

}  // namespace

RangeObject::RangeObject(Integer start_in, Integer stop_in, Integer step_in)
    : Object(Kind::kRange),
      start(start_in),
      stop(stop_in),
      step(step_in),
      length(range_length(start_in, stop_in, step_in)) {}

BoundArgs::BoundArgs(const char* function, const CallArgs& args, std::initializer_list<const char*> names,
                     size_t required)
    : function_(function), names_(names), values_(names.size(), nullptr) {
  if (args.positional.size() > names_.size())
    fail(std::string(function) + "() takes at most " + std::to_string(names_.size()) + " arguments (" +
         std::to_string(args.positional.size()) + " given)");
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.keyword) {
    size_t i = 0;
    while (i < names_.size() && name != names_[i]) ++i;
    if (i == names_.size())
      fail(std::string(function) + "() got an unexpected keyword argument '" + name + "'");
    if (values_[i] != nullptr)
      fail(std::string(function) + "() got multiple values for argument '" + name + "'");
    values_[i] = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (values_[i] == nullptr)
      fail(std::string(function) + "() missing required argument '" + names_[i] + "'");
}

bool BoundArgs::flag(size_t i, bool fallback) const { return has(i) ? is_truthy(at(i)) : fallback; }

Integer BoundArgs::integer(size_t i, Integer fallback) const {
  if (!has(i)) return fallback;
  if (at(i).is_undefined()) fail_undefined(at(i));
  if (!at(i).is_integral())
    fail(std::string(function_) + "(): argument '" + names_[i] + "' must be an integer, not " +
         type_name(at(i)));
  return at(i).integer();
}

TextPtr BoundArgs::text(size_t i) const {
  if (!at(i).is_text())
    fail(std::string(function_) + "(): argument '" + names_[i] + "' must be str, not " + type_name(at(i)));
  return at(i).text();
}

}  // namespace omnibus::jinja
