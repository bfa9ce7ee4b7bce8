// The server's API, as far as the page uses it.
const Api = (() => {
  let key = "";

  class ApiError extends Error {
    constructor(message, status) {
      super(message);
      this.status = status;  // of HTTP; 0 when no answer came
    }
  }

  function headers() {
    const out = { "Content-Type": "application/json" };
    if (key !== "") out.Authorization = "Bearer " + key;
    return out;
  }

  // The server's own words where it gave some.
  async function failure(response) {
    let message = "";
    try {
      message = String((await response.json()).error.message);
    } catch { }  // not the server's JSON, a proxy's page perhaps
    return new ApiError(message || `The server answered ${response.status} ${response.statusText}`, response.status);
  }

  async function request(path, options) {
    let response;
    try {
      response = await fetch(path, { headers: headers(), ...options });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The server cannot be reached. Is it running?", 0);
    }
    if (!response.ok) throw await failure(response);
    return response;
  }

  // [{id, context}], context in tokens or 0 when the server does not say.
  async function models() {
    const body = await (await request("/v1/models", {})).json();
    return body.data.map((model) => ({ id: String(model.id), context: Number(model.max_model_len) || 0 }));
  }

  const cutOff = () => new ApiError("The connection ended before the answer did.", 0);

  async function* pieces(response, signal) {
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const { value, done } = await reader.read().catch((error) => { throw signal.aborted ? error : cutOff(); });
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  }

  function parseEvent(data) {
    let event = null;
    try {
      event = JSON.parse(data);
    } catch { }  // judged below
    if (typeof event !== "object" || event === null) throw new ApiError("The server sent something that is no answer.", 200);
    return event;
  }

  // The events of a streamed answer. Ends well only with [DONE].
  async function* chat(body, signal) {
    const response = await request("/v1/chat/completions", { method: "POST", body: JSON.stringify(body), signal });
    const parser = new Sse.Parser();
    for await (const piece of pieces(response, signal)) {
      for (const data of parser.push(piece)) {
        if (data === "[DONE]") return;
        const event = parseEvent(data);
        if (event.error) throw new ApiError(String(event.error.message || "The server failed."), 200);
        yield event;
      }
    }
    throw cutOff();
  }

  return { models, chat, setKey: (value) => { key = value; } };
})();
