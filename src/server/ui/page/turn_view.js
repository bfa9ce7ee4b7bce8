// One message of a chat on the page.
const TurnView = (() => {
  const { el, iconButton } = Dom;
  const number = (value, digits) =>
    value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

  const kEnds = { length: "cut off at the token limit", stopped: "stopped", content_filter: "withheld by a filter",
    abort: "ended by the server" };

  function statsText(node) {
    const parts = [];
    const stats = node.stats;
    if (stats) {
      parts.push(`${number(stats.tokens, 0)} ${stats.tokens === 1 ? "token" : "tokens"}`);
      if (stats.rate > 0) parts.push(`${number(stats.rate, 1)} tok/s`);
      parts.push(`first after ${number(stats.first, 2)} s`);
    }
    if (kEnds[node.end]) parts.push(kEnds[node.end]);
    return parts.join(" \u00b7 ");
  }

  const kCutOff = ["length", "stopped", "error", "abort"];

  // actions: {edit(node, text), regenerate(node), retry(node), goOn(node), select(node)}; place: {index, siblings, last},
  // its place among its branches and whether the shown branch ends with it.
  class View {
    constructor(node, place, actions) {
      this.node = node;
      this.actions = actions;
      this.place = place;
      this.shown = 0;      // of content
      this.thought = 0;    // of reasoning
      this.element = el("article", { class: "turn " + node.role, "aria-label": node.role === "user" ? "You" : "Answer" });
      if (node.role === "user") this.buildQuestion();
      else this.buildAnswer();
    }

    buildQuestion() {
      this.text = el("div", { class: "question" }, this.node.content);
      this.element.replaceChildren(this.text, el("div", { class: "tools" }, ...this.branchButtons(),
        this.copyButton(), iconButton("edit", "Edit message", () => this.edit())));
    }

    buildAnswer() {
      this.thinking = el("details", { class: "thinking", hidden: true },
        el("summary", {}, el("span", { class: "thinking-label" }, "Thinking")), el("div", { class: "prose" }));
      this.thinkingView = new Markdown.View(this.thinking.lastChild);
      this.text = el("div", { class: "prose answer" });
      this.markdown = new Markdown.View(this.text);
      this.waiting = el("div", { class: "waiting", hidden: true }, el("span"), el("span"), el("span"));
      this.alert = el("div", { class: "alert", role: "alert", hidden: true });
      this.stats = el("span", { class: "stats" });
      this.copy = this.copyButton();
      this.goOn = iconButton("on", "Continue the answer", () => this.actions.goOn(this.node));
      this.tools = el("div", { class: "tools" }, ...this.branchButtons(), this.copy,
        iconButton("again", "Answer again", () => this.actions.regenerate(this.node)), this.goOn, this.stats);
      this.element.append(this.thinking, this.text, this.waiting, this.alert, this.tools);
      this.update(false);
    }

    branchButtons() {
      const { index, siblings } = this.place;
      if (siblings.length < 2) return [];
      const go = (step) => () => this.actions.select(siblings[index + step]);
      return [el("span", { class: "branches" },
        iconButton("left", "Earlier version", go(-1), { disabled: index === 0 }),
        el("span", {}, `${index + 1}/${siblings.length}`),
        iconButton("right", "Later version", go(1), { disabled: index === siblings.length - 1 }))];
    }

    copyButton() {
      const label = this.node.role === "user" ? "Copy message" : "Copy answer";
      return iconButton("copy", label, async () => {
        Notices.announce((await Clipboard.copy(this.node.content)) ? "Copied" : "The browser refused to copy");
      }, { class: "icon-button copy-turn" });
    }

    // Shows what has been added to an answer since the last time.
    update(running) {
      const { content, reasoning } = this.node;
      if (reasoning.length > this.thought) {
        this.thinkingView.append(reasoning.slice(this.thought));
        this.thought = reasoning.length;
        this.thinking.hidden = false;
      }
      if (content.length > this.shown) {
        this.markdown.append(content.slice(this.shown));
        this.shown = content.length;
      }
      this.thinking.classList.toggle("active", running && content === "");
      this.waiting.hidden = !running || content !== "" || reasoning !== "";
      this.stats.textContent = statsText(this.node);
      this.copy.hidden = content === "";
      this.goOn.hidden = !this.place.last || content === "" || !kCutOff.includes(this.node.end);
      this.element.classList.toggle("running", running);
      this.element.setAttribute("aria-busy", String(running));
      if (this.node.error && this.alert.hidden) this.showError();
    }

    showError() {
      this.alert.replaceChildren(el("p", {}, this.node.error),
        el("button", { type: "button", class: "retry", onclick: () => this.actions.retry(this.node) }, "Try again"));
      this.alert.hidden = false;
    }

    edit() {
      const area = el("textarea", { "aria-label": "Edit message", rows: "1" });
      area.value = this.node.content;
      const cancel = () => { this.buildQuestion(); this.element.querySelector("[aria-label='Edit message']").focus(); };
      const send = () => { if (area.value.trim() !== "") this.actions.edit(this.node, area.value); };
      area.addEventListener("input", () => Composer.grow(area));
      area.addEventListener("keydown", (event) => {
        if (event.key === "Escape") { event.stopPropagation(); cancel(); }
        else if (Composer.isSend(event)) { event.preventDefault(); send(); }
      });
      this.element.replaceChildren(el("div", { class: "editor" }, area, el("div", { class: "editor-buttons" },
        el("button", { type: "button", onclick: cancel }, "Cancel"),
        el("button", { type: "button", class: "main", onclick: send }, "Send"))));
      Composer.grow(area);
      area.focus();
    }
  }

  return { View };
})();
