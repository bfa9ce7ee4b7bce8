// Answers being written: at most one per chat; they go on while another chat is shown.
const Answers = (() => {
  const kSaveEveryMs = 3000;
  const kLeastSeconds = 0.05;  // a rate over less than this says nothing
  const running = new Map();  // chat id -> Run

  class Run {
    // onward: the answer was cut off and goes on from where it is.
    constructor(chat, node, listener, onward) {
      this.chat = chat;
      this.node = node;
      this.listener = listener;
      this.onward = onward;
      this.earlier = onward && node.stats ? node.stats.tokens : 0;
      this.controller = new AbortController();
      this.started = performance.now();
      this.first = 0;
      this.last = 0;
      this.deltas = 0;
      this.usage = null;
      this.saved = this.started;
    }

    body() {
      const path = Chat.path(this.chat);
      const before = path.slice(0, path.indexOf(this.node) + (this.onward ? 1 : 0));
      const body = { messages: Chat.messages(before, this.chat.system ?? Settings.system), stream: true,
        stream_options: { include_usage: true, continuous_usage_stats: true }, ...Settings.fields() };
      if (this.onward) Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
      if (Settings.model !== "") body.model = Settings.model;
      return body;
    }

    async go() {
      try {
        for await (const event of Api.chat(this.body(), this.controller.signal)) this.take(event);
        this.node.end ||= "stop";
      } catch (error) {
        if (this.controller.signal.aborted) this.node.end = "stopped";
        else this.fail(error);
      }
      this.measure();
    }

    fail(error) {
      this.node.end = "error";
      this.node.error = String(error.message || error).slice(0, 1000);
      this.status = error.status;
    }

    take(event) {
      if (event.usage) this.usage = event.usage;
      if (typeof event.model === "string") this.node.model = event.model;
      const choice = Array.isArray(event.choices) ? event.choices[0] : null;
      if (!choice) return;
      const delta = choice.delta || {};
      const reasoning = delta.reasoning_content || delta.reasoning || "";
      const content = delta.content || "";
      if (reasoning !== "" || content !== "") {
        this.last = performance.now();
        this.first ||= this.last;
        ++this.deltas;
        this.node.reasoning += reasoning;
        this.node.content += content;
        this.measure();
      }
      if (choice.finish_reason) this.node.end = choice.finish_reason;
      this.listener.progress(this);
      if (performance.now() - this.saved > kSaveEveryMs) {
        this.saved = performance.now();
        Chats.save(this.chat);
      }
    }

    // Tokens as the server counts them; per second from the first to the last, as they reach the page.
    measure() {
      if (!this.first) return;
      const tokens = this.usage ? this.usage.completion_tokens : this.deltas;
      const seconds = (this.last - this.first) / 1000;
      // The prompt of an answer that goes on holds what is there of it.
      const prompt = this.usage ? Math.max(0, this.usage.prompt_tokens - this.earlier) : 0;
      this.node.stats = { tokens: this.earlier + tokens, prompt, first: (this.first - this.started) / 1000,
        rate: tokens > 1 && seconds > kLeastSeconds ? (tokens - 1) / seconds : 0 };
    }
  }

  // Writes the answer `node`, the last of the shown branch. listener: {progress(run), finished(run)}.
  async function start(chat, node, listener, onward = false) {
    const run = new Run(chat, node, listener, onward);
    node.end = node.error = null;
    running.set(chat.id, run);
    Chats.save(chat);
    await run.go();
    running.delete(chat.id);
    if (Chats.has(chat)) Chats.save(chat);
    listener.finished(run);
  }

  function stop(chat) {
    const run = running.get(chat.id);
    if (run) run.controller.abort();
    return run !== undefined;
  }

  // The page may be about to go.
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") running.forEach((run) => Chats.save(run.chat));
  });

  // It goes: what that cuts off has been stopped, and is no error.
  addEventListener("pagehide", () => running.forEach((run) => run.controller.abort()));

  return { start, stop, of: (chat) => running.get(chat.id) || null };
})();
