// The side with the chats: beside the chat where there is room, over it on a narrow screen.
const Drawer = (() => {
  const { byId } = Dom;
  const narrow = matchMedia("(max-width: 50rem)");
  let opened = false;

  function apply() {
    const over = narrow.matches && opened;
    document.body.classList.toggle("drawer-open", opened);
    byId("drawer").inert = !opened;
    byId("main").inert = over;
    byId("backdrop").hidden = !over;
    byId("open-drawer").hidden = opened;
    byId("open-drawer").setAttribute("aria-expanded", String(opened));
  }

  function open() {
    opened = true;
    apply();
    if (!narrow.matches) Storage.remember("drawer", true);
    byId("close-drawer").focus();
  }

  function close() {
    opened = false;
    apply();
    if (!narrow.matches) Storage.remember("drawer", false);
    byId("open-drawer").focus();
  }

  // After a choice was made in it.
  function leave() {
    if (!narrow.matches || !opened) return;
    opened = false;
    apply();
  }

  function fit() {
    opened = !narrow.matches && Storage.recall("drawer") !== false;
    apply();
  }

  function init() {
    byId("open-drawer").addEventListener("click", open);
    byId("close-drawer").addEventListener("click", close);
    byId("backdrop").addEventListener("click", close);
    narrow.addEventListener("change", fit);
    fit();
  }

  return { init, leave, close, toggle: () => (opened ? close() : open()), isOver: () => narrow.matches && opened };
})();
