// The settings: system prompt, sampling, key, looks, data. Each takes effect when it is changed.
const SettingsDialog = (() => {
  const { byId, el } = Dom;
  let actions = null;  // {keyChanged(), chat(), chatChanged()}

  function check(input, message) {
    input.setCustomValidity(message);
    input.setAttribute("aria-invalid", String(message !== ""));
    byId(input.id + "-error").textContent = message;
    return message === "";
  }

  function takeNumber(field, input) {
    if (input.value === "" && !input.validity.badInput) {
      if (check(input, "")) Settings.setNumber(field.name, null);
      return;
    }
    const number = Number(input.value);
    const bounds = field.max > 2147483646 ? `${field.min} or more` : `from ${field.min} to ${field.max}`;
    const good = !input.validity.badInput && Settings.inBounds(field, number);
    if (check(input, good ? "" : `A ${field.step === 1 ? "whole number" : "number"}, ${bounds}.`)) {
      Settings.setNumber(field.name, number);
    }
  }

  function numberField(field) {
    const id = "set-" + field.name;
    const input = el("input", { id, type: "number", min: field.min, max: field.max, step: field.step === 1 ? 1 : "any",
      placeholder: "default", "aria-describedby": `${id}-hint ${id}-error` });
    input.addEventListener("input", () => takeNumber(field, input));
    return el("div", { class: "field" }, el("label", { for: id }, field.label), input,
      el("p", { class: "hint", id: id + "-hint" }, field.hint), el("p", { class: "field-error", id: id + "-error" }));
  }

  function takeStops() {
    const lines = byId("set-stop").value.split("\n").filter((line) => line !== "");
    const good = lines.length <= Settings.kMaxStops;
    if (check(byId("set-stop"), good ? "" : `At most ${Settings.kMaxStops} lines.`)) Settings.set({ stop: lines });
  }

  function takeSystem() {
    const text = byId("set-system").value;
    const chat = actions.chat();
    if (byId("set-system-here").checked) chat.system = text;
    else {
      chat.system = null;
      Settings.set({ system: text });
    }
    actions.chatChanged();
  }

  function takeKey() {
    const key = byId("set-key").value.trim();
    Api.setKey(key);
    Storage.remember("key", byId("set-key-keep").checked && key !== "" ? key : null);
  }

  function fillSampling() {
    for (const field of Settings.kNumbers) {
      const input = byId("set-" + field.name);
      input.value = Settings.number(field.name) ?? "";
      check(input, "");
    }
    byId("set-stop").value = Settings.stop.join("\n");
    check(byId("set-stop"), "");
  }

  function fill() {
    const chat = actions.chat();
    byId("set-system-here").checked = chat.system !== null;
    byId("set-system").value = chat.system ?? Settings.system;
    fillSampling();
    byId("set-theme-" + Theme.choice).checked = true;
  }

  function open() {
    if (byId("settings").open) return;
    fill();
    byId("key-wanted").hidden = true;
    byId("settings").showModal();
  }

  // Because the server refused a request for want of the right key.
  function openForKey() {
    open();
    byId("key-wanted").hidden = false;
    byId("set-key").focus();
    byId("set-key").scrollIntoView({ block: "center" });
  }

  function loadKey() {
    const key = Storage.recall("key");
    if (typeof key !== "string" || key === "") return;
    byId("set-key").value = key;
    byId("set-key-keep").checked = true;
    Api.setKey(key);
  }

  function init(given) {
    actions = given;
    byId("sampling").append(...Settings.kNumbers.map(numberField));
    byId("set-system").addEventListener("input", takeSystem);
    byId("set-system-here").addEventListener("change", () => {
      // Untick: back to the prompt of all chats.
      if (!byId("set-system-here").checked) byId("set-system").value = Settings.system;
      takeSystem();
    });
    byId("set-stop").addEventListener("input", takeStops);
    byId("reset-sampling").addEventListener("click", () => {
      Settings.resetSampling();
      fillSampling();
      Notices.announce("Sampling is back to the defaults");
    });
    byId("set-key").addEventListener("input", takeKey);
    byId("set-key").addEventListener("change", actions.keyChanged);
    byId("set-key").addEventListener("keydown", (event) => { if (event.key === "Enter") byId("settings").close(); });
    byId("set-key-keep").addEventListener("change", takeKey);
    for (const name of ["system", "light", "dark"]) {
      byId("set-theme-" + name).addEventListener("change", () => Theme.set(name));
    }
    loadKey();
  }

  return { init, open, openForKey };
})();
