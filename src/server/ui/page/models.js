// The model picker, and how much of the model's context the chat fills.
const Models = (() => {
  const { byId, el } = Dom;
  let models = [];

  const current = () => models.find((model) => model.id === byId("model").value) || null;

  function showModels() {
    const picker = byId("model");
    picker.replaceChildren(...models.map((model) => el("option", { value: model.id }, model.id.split("/").pop())));
    if (models.length === 0) picker.append(el("option", { value: "" }, "No model"));
    picker.disabled = models.length === 0;
    if (models.some((model) => model.id === Settings.model)) picker.value = Settings.model;
    picker.title = picker.value;
  }

  function showContext(used) {
    const limit = current() ? current().context : 0;
    const shown = used > 0 && limit > 0;
    byId("context").hidden = !shown;
    if (!shown) return;
    const share = Math.min(1, used / limit);
    const full = share > 0.9;
    byId("context").classList.toggle("full", full);
    byId("context-text").textContent = `${used.toLocaleString("en")} / ${limit.toLocaleString("en")}`;
    byId("context").title = `Tokens of the model's context in use: ${Math.round(share * 100)} %` +
      (full ? ". Start a new chat soon." : "");
    byId("context-bar").setAttribute("width", String(Math.round(share * 100)));
  }

  // onerror(error) when the list cannot be had.
  async function load(onerror) {
    try {
      models = await Api.models();
    } catch (error) {
      models = [];
      onerror(error);
    }
    showModels();
    // A model that is gone is not asked for.
    if (models.length > 0) Settings.set({ model: byId("model").value });
  }

  function init(onchange) {
    showModels();
    byId("model").addEventListener("change", () => {
      Settings.set({ model: byId("model").value });
      byId("model").title = byId("model").value;
      onchange();
    });
  }

  return { init, load, showContext };
})();
