// Keys that work everywhere on the page. The help dialog of chat_page.html lists them.
const Shortcuts = (() => {
  const isField = (node) => node.matches("input, textarea, select");

  // actions: {newChat, help, settings, drawer, stop, write}
  function init(actions) {
    const withControl = { k: actions.newChat, "/": actions.help, ",": actions.settings, b: actions.drawer };
    document.addEventListener("keydown", (event) => {
      if (document.querySelector("dialog[open]") || document.querySelector("#menu:popover-open")) return;
      const control = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !isField(event.target);
      let action = null;
      if (control) action = withControl[event.key.toLowerCase()];
      else if (event.key === "Escape") action = actions.stop;
      else if (plain && event.key === "/") action = actions.write;
      else if (plain && event.key === "?") action = actions.help;
      if (!action) return;
      event.preventDefault();
      action();
    });
  }

  return { init };
})();
