// How Ollama's clients name models: letters in either case, the tag "latest" and the default registry and
// namespace may be left out.
#pragma once

#include <string>
#include <string_view>

namespace omnibus {

// One spelling for all names of one model: lower case, without "registry.ollama.ai/", "library/" and
// ":latest".
std::string canonical_model_name(std::string_view name);

bool same_model_name(std::string_view a, std::string_view b);

// Without the default registry and namespace, letters as they are.
std::string_view local_model_name(std::string_view name);

// The name as Ollama's lists show it: with its tag.
std::string name_with_tag(std::string_view name);

// A name of a request as errors repeat it: at most 200 bytes of it, "..." after a longer one.
std::string name_for_error(std::string_view name);

}  // namespace omnibus
