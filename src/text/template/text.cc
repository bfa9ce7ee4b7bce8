#include "text.h"

#include <algorithm>
#include <utility>

namespace omnibus::jinja {

Text::Text(std::string bytes, std::vector<TrustRun> runs, bool markup, Budget* budget)
    : bytes_(std::move(bytes)), runs_(std::move(runs)), markup_(markup) {
  ascii_ = std::all_of(bytes_.begin(), bytes_.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
  if (budget == nullptr) return;
  const size_t bytes_used = sizeof(Text) + bytes_.capacity() + runs_.capacity() * sizeof(TrustRun);
  budget->allocate(bytes_used);
  budget_ = budget;
  charged_ = bytes_used;
}

Text::~Text() {
  if (budget_ != nullptr) budget_->release(charged_);
}

std::vector<TrustRun>::const_iterator Text::run_at(size_t byte) const {
  return std::upper_bound(runs_.begin(), runs_.end(), byte,
                          [](size_t at, const TrustRun& r) { return at < r.end; });
}

bool Text::trusted_at(size_t byte) const {
  const auto run = run_at(byte);
  return run != runs_.end() && run->trusted;
}

void TextBuilder::charge(size_t more) {
  if (budget_ == nullptr) return;
  budget_->check_text(bytes_.size() + more);
  if (more >= 4096) budget_->bulk(more >> 6);
}

void TextBuilder::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  charge(bytes.size());
  bytes_.append(bytes);
  const auto end = static_cast<uint32_t>(bytes_.size());
  if (!runs_.empty() && runs_.back().trusted == trusted)
    runs_.back().end = end;
  else
    runs_.push_back({end, trusted});
}

void TextBuilder::append(const Text& text, size_t begin, size_t end) {
  text.for_each_run(begin, end, [&](std::string_view piece, bool trusted) { append(piece, trusted); });
}

void TextBuilder::append_repeated(std::string_view bytes, size_t count, bool trusted) {
  if (bytes.empty() || count == 0) return;
  if (budget_ != nullptr) {
    // Checked before the multiplication can wrap or the loop can run.
    budget_->check_text(count);
    budget_->check_text(bytes.size() * count);
  }
  std::string all;
  all.reserve(bytes.size() * count);
  for (size_t i = 0; i < count; ++i) all.append(bytes);
  append(all, trusted);
}

TextPtr TextBuilder::build(bool markup) {
  auto text = std::make_shared<const Text>(std::move(bytes_), std::move(runs_), markup, budget_);
  bytes_.clear();
  runs_.clear();
  return text;
}

TextPtr make_text(std::string_view bytes, bool trusted, Budget* budget) {
  std::vector<TrustRun> runs;
  if (!bytes.empty()) runs.push_back({static_cast<uint32_t>(bytes.size()), trusted});
  return std::make_shared<const Text>(std::string(bytes), std::move(runs), false, budget);
}

TextPtr slice_text(const Text& text, size_t begin, size_t end, Budget* budget) {
  TextBuilder builder(budget);
  builder.append(text, begin, end);
  return builder.build(text.markup());
}

}  // namespace omnibus::jinja
