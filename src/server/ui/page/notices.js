// Short messages at the foot of the page, some with something to do, and words for screen readers.
const Notices = (() => {
  const kShownMs = 8000;
  let timer = 0;

  function hide() {
    clearTimeout(timer);
    Dom.byId("notice").replaceChildren();
  }

  // action: {label, run} or nothing.
  function show(message, action) {
    hide();
    const button = action && Dom.el("button", { type: "button", onclick: () => { hide(); action.run(); } }, action.label);
    Dom.byId("notice").append(Dom.el("div", { class: "notice" }, Dom.el("span", {}, message), button,
      Dom.iconButton("close", "Dismiss", hide)));
    const later = () => {  // not while somebody is at it
      if (Dom.byId("notice").matches(":hover, :focus-within")) timer = setTimeout(later, kShownMs);
      else hide();
    };
    timer = setTimeout(later, kShownMs);
  }

  // Said, not shown.
  function announce(text) {
    Dom.byId("announcement").textContent = text;
  }

  return { show, announce };
})();
