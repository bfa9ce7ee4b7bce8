// The box in which messages are written.
const Composer = (() => {
  const { byId } = Dom;
  let submit = () => { };

  function grow(area) {
    area.style.height = "auto";
    area.style.height = area.scrollHeight + 2 + "px";
  }

  // Enter alone, and not the one that ends the input of a Japanese or Chinese word.
  function isSend(event) {
    return event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229;
  }

  function set(text) {
    const input = byId("input");
    input.value = text;
    grow(input);
    refresh();
  }

  function focus() {
    const input = byId("input");
    input.focus();
    input.setSelectionRange(input.value.length, input.value.length);
  }

  // Where a focus would push up a keyboard that nobody asked for, the box waits to be touched.
  function offer() {
    if (!matchMedia("(pointer: coarse)").matches) focus();
  }

  function refresh() {
    byId("send").disabled = byId("input").value.trim() === "";
  }

  // One button at a time: what can be done now.
  function setRunning(running) {
    const hadFocus = [byId("send"), byId("stop")].includes(document.activeElement);
    byId("send").hidden = running;
    byId("stop").hidden = !running;
    if (hadFocus) (running ? byId("stop") : byId("input")).focus();
  }

  // onsubmit(text) says whether it took the text.
  function init(onsubmit, onstop) {
    submit = () => {
      const text = byId("input").value;
      if (text.trim() !== "" && onsubmit(text)) set("");
    };
    byId("composer").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
    byId("input").addEventListener("input", () => { grow(byId("input")); refresh(); });
    byId("input").addEventListener("keydown", (event) => {
      if (!isSend(event)) return;
      event.preventDefault();
      submit();
    });
    byId("stop").addEventListener("click", onstop);
    refresh();
  }

  return { init, set, focus, offer, grow, isSend, setRunning };
})();
