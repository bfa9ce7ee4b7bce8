#include "src/server/docs/docs_page.h"

#include <gtest/gtest.h>

#include "src/server/api/body_fields.h"
#include "src/server/docs/openapi.h"
#include "src/server/openai/generation_fields.h"

namespace omnibus {
namespace {

// A model's name may come from that of its file, which may have any bytes.
TEST(DocsPage, ModelNameOfAnyBytes) {
  RouteTable routes;
  routes.add({"POST", "/v1/completions", Scope::kInference, kGenerationBodyBytes, nullptr,
              body_fields(generation_field_table(), kOnCompletions)});
  const auto page = [&](const std::string& model) {
    DocsConfig config;
    config.model = model;
    return docs_page_html(make_openapi(config, routes));
  };
  EXPECT_NE(page("my-model").find("my-model"), std::string::npos);
  EXPECT_NE(page("my-\xff-model").find("my-\xef\xbf\xbd-model"), std::string::npos);
}

}  // namespace
}  // namespace omnibus
