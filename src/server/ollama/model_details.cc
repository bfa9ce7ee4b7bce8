#include "model_details.h"

#include <array>
#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace omnibus {
namespace {

// general.file_type, where one name says it all.
constexpr std::array<std::pair<int64_t, const char*>, 17> kFileTypes = {{{0, "F32"},
                                                                         {1, "F16"},
                                                                         {2, "Q4_0"},
                                                                         {3, "Q4_1"},
                                                                         {7, "Q8_0"},
                                                                         {8, "Q5_0"},
                                                                         {9, "Q5_1"},
                                                                         {10, "Q2_K"},
                                                                         {11, "Q3_K_S"},
                                                                         {12, "Q3_K_M"},
                                                                         {13, "Q3_K_L"},
                                                                         {14, "Q4_K_S"},
                                                                         {15, "Q4_K_M"},
                                                                         {16, "Q5_K_S"},
                                                                         {17, "Q5_K_M"},
                                                                         {18, "Q6_K"},
                                                                         {32, "BF16"}}};

std::string quantization_of(const GgufFile& file) {
  if (const auto type = file.get_int("general.file_type"); type.ok()) {
    for (const auto& [id, name] : kFileTypes) {
      if (id == *type) return name;
    }
  }
  // Else what most of the weights are.
  std::map<std::string, int64_t> elements;
  for (const GgufTensorInfo& tensor : file.tensors()) {
    elements[ggml_type_name(static_cast<uint32_t>(tensor.type))] += tensor.elements();
  }
  std::string best = "unknown";
  int64_t most = 0;
  for (const auto& [name, count] : elements) {
    if (count > most) std::tie(most, best) = std::pair(count, name);
  }
  return best;
}

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

Json value_json(const GgufValue& value, bool verbose) {
  return std::visit(
      [verbose](const auto& v) -> Json {
        using V = std::decay_t<decltype(v)>;
        if constexpr (kIsVector<V>) {
          if (!verbose) return nullptr;
          Json out = Json::array();
          for (const auto& item : v) out.push_back(static_cast<typename V::value_type>(item));
          return out;
        } else if constexpr (std::is_same_v<V, double>) {
          return std::isfinite(v) ? Json(v) : Json(nullptr);
        } else {
          return v;
        }
      },
      value);
}

}  // namespace

ModelDetails describe_gguf(const GgufFile& file) {
  ModelDetails details;
  details.family = file.get_string("general.architecture").value_or("");
  for (const GgufTensorInfo& tensor : file.tensors()) details.parameters += tensor.elements();
  details.quantization = quantization_of(file);
  return details;
}

std::string parameter_size(int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  if (parameters >= 1'000'000'000) return fmt::format("{:.1f}B", count / 1e9);
  if (parameters >= 1'000'000) return fmt::format("{:.1f}M", count / 1e6);
  if (parameters >= 1'000) return fmt::format("{:.1f}K", count / 1e3);
  return fmt::format("{}", parameters);
}

Json details_json(const ModelDetails& details) {
  Json out;
  out["parent_model"] = "";
  out["format"] = "gguf";
  out["family"] = details.family;
  out["families"] = Json::array({details.family});
  out["parameter_size"] = parameter_size(details.parameters);
  out["quantization_level"] = details.quantization;
  return out;
}

Json model_info_json(const GgufFile& file, bool verbose) {
  Json out = Json::object();
  for (const auto& [key, value] : file.metadata()) out[key] = value_json(value, verbose);
  if (!out.contains("general.parameter_count")) {
    out["general.parameter_count"] = describe_gguf(file).parameters;
  }
  return out;
}

ModelDetails ModelDetailsCache::get(const std::string& digest, const std::string& path) {
  std::lock_guard lock(mutex_);
  const auto known = by_digest_.find(digest);
  if (known != by_digest_.end()) return known->second;
  ModelDetails details;
  if (const auto file = GgufFile::open(path); file.ok()) details = describe_gguf(**file);
  by_digest_.emplace(digest, details);
  return details;
}

}  // namespace omnibus
