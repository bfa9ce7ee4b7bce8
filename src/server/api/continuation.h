// continue_final_message: a prompt that ends where the text of its last message ends, so that the model goes
// on with it. The rule is that of Hugging Face transformers: the last message is marked, rendered like any
// other, and all that the template wrote from the mark on is dropped; where the template trims the message,
// spaces at its end go too.
#pragma once

#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"
#include "omnibus/text/template/chat_template.h"

namespace omnibus {

// Marks the last of `messages` (normalised, not empty) and returns its text as it was. 400 unless it is an
// assistant's.
StatusOr<std::string> mark_final_message(Json& messages);

// Cuts a rendered prompt at the mark. 400 when the template left the last message out, or a part of it.
Status cut_at_mark(std::string_view message, RenderedPrompt& prompt);

}  // namespace omnibus
