// A small menu next to the button that opens it; arrow keys move, Escape and Tab close.
const Menu = (() => {
  const { byId, el, icon } = Dom;
  let opener = null;

  function close() {
    if (byId("menu").matches(":popover-open")) byId("menu").hidePopover();
  }

  // entries: [{label, icon, run, danger}]
  function open(button, label, entries) {
    const menu = byId("menu");
    opener = button;
    menu.setAttribute("aria-label", label);
    menu.replaceChildren(...entries.map((entry) => el("button",
      { type: "button", role: "menuitem", class: entry.danger ? "danger" : null,
        onclick: () => { close(); entry.run(); } }, icon(entry.icon), el("span", {}, entry.label))));
    menu.showPopover();
    const place = button.getBoundingClientRect();
    const left = Math.min(place.left, innerWidth - menu.offsetWidth - 8);
    const below = place.bottom + 4;
    menu.style.left = Math.max(8, left) + "px";
    const fits = below + menu.offsetHeight <= innerHeight;
    menu.style.top = (fits ? below : Math.max(8, place.top - menu.offsetHeight - 4)) + "px";
    menu.firstChild.focus();
  }

  function onkeydown(event) {
    const entries = Array.from(byId("menu").children);
    const at = entries.indexOf(document.activeElement);
    const places = { ArrowDown: at + 1, ArrowUp: at - 1 + entries.length, Home: 0, End: entries.length - 1 };
    if (event.key in places) {
      event.preventDefault();
      entries[places[event.key] % entries.length].focus();
    } else if (event.key === "Tab") {
      close();
    }
  }

  function init() {
    byId("menu").addEventListener("keydown", onkeydown);
    byId("menu").addEventListener("toggle", (event) => {
      if (opener) opener.setAttribute("aria-expanded", String(event.newState === "open"));
      if (event.newState === "closed" && opener && document.activeElement === document.body) opener.focus();
    });
  }

  return { init, open };
})();
