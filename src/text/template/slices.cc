// a[start:stop:step] with Python's clamping.
#include "methods.h"
#include "operators.h"
#include "unicode.h"

namespace omnibus::jinja {
namespace {

struct Steps {
  Integer start = 0, stop = 0, step = 1;
  size_t count = 0;
};

Integer clamp(Integer value, Integer size, bool backwards) {
  if (value < 0) {
    value += size;
    if (value < 0) return backwards ? -1 : 0;
    return value;
  }
  if (value >= size) return backwards ? size - 1 : size;
  return value;
}

Steps resolve(const SliceBounds& bounds, size_t length) {
  const auto size = static_cast<Integer>(length);
  Steps out;
  out.step = bounds.step.value_or(1);
  if (out.step == 0) fail("slice step cannot be zero");
  // Beyond the length one step is as good as another; this keeps the arithmetic small.
  if (out.step > size + 1) out.step = size + 1;
  if (out.step < -(size + 1)) out.step = -(size + 1);
  const bool back = out.step < 0;
  out.start = bounds.start ? clamp(*bounds.start, size, back) : (back ? size - 1 : 0);
  out.stop = bounds.stop ? clamp(*bounds.stop, size, back) : (back ? -1 : size);
  const Integer span = back ? out.start - out.stop : out.stop - out.start;
  const Integer stride = back ? -out.step : out.step;
  out.count = span <= 0 ? 0 : static_cast<size_t>((span + stride - 1) / stride);
  return out;
}

Value slice_of_text(const Text& text, const SliceBounds& bounds, Budget& budget) {
  budget.bulk(text.ascii() ? 1 : text.size());
  const size_t length = text.ascii() ? text.size() : count_code_points(text.view());
  const Steps steps = resolve(bounds, length);
  if (steps.step == 1) {
    const auto first = static_cast<size_t>(steps.start);
    const size_t begin = text.ascii() ? first : offset_of(text.view(), first);
    const size_t end = text.ascii() ? first + steps.count : offset_of(text.view(), steps.count, begin);
    return slice_text(text, begin, end, &budget);
  }
  TextBuilder out(&budget);
  budget.bulk(length);
  std::vector<uint32_t> offsets;
  offsets.reserve(length + 1);
  for (size_t i = 0; i < text.size(); i += decode_at(text.view(), i).bytes)
    offsets.push_back(static_cast<uint32_t>(i));
  offsets.push_back(static_cast<uint32_t>(text.size()));
  for (size_t i = 0; i < steps.count; ++i) {
    const auto at = static_cast<size_t>(steps.start + static_cast<Integer>(i) * steps.step);
    if ((i & 63) == 0) budget.step();
    out.append(text, offsets[at], offsets[at + 1]);
  }
  return out.build(text.markup());
}

}  // namespace

Value slice_value(const Value& value, const SliceBounds& bounds, Heap& heap) {
  if (value.is_text()) return slice_of_text(*value.text(), bounds, heap.budget());
  if (value.is_list()) {
    const std::vector<Value>& from = value.list()->items;
    const Steps steps = resolve(bounds, from.size());
    std::vector<Value> items;
    items.reserve(steps.count);
    for (size_t i = 0; i < steps.count; ++i)
      items.push_back(from[static_cast<size_t>(steps.start + static_cast<Integer>(i) * steps.step)]);
    return heap.list(std::move(items), value.list()->tuple);
  }
  if (const RangeObject* range = as_range(value)) {
    const Steps steps = resolve(bounds, range->length);
    const Integer start = range->start + steps.start * range->step;
    const Integer step = range->step * steps.step;
    return heap.make<RangeObject>(start, range->start + steps.stop * range->step, step);
  }
  if (value.is_dict()) fail("unhashable type: 'slice'");
  fail(std::string("'") + type_name(value) + "' object is not subscriptable");
}

}  // namespace omnibus::jinja
