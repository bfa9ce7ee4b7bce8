// Copying, also where the page came over plain HTTP from another machine and navigator.clipboard is absent.
const Clipboard = (() => {
  function copyBySelection(text) {
    const area = Dom.el("textarea", { class: "off-screen", readonly: true, "aria-hidden": "true", tabindex: "-1" });
    area.value = text;
    const before = document.activeElement;
    (document.querySelector("dialog[open]") || document.body).append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (before) before.focus();
    return copied;
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyBySelection(text);  // absent or refused
    }
  }

  return { copy };
})();
