// The shown chat: its messages, and following an answer as it grows.
const LogView = (() => {
  const kNear = 40;  // pixels from the end that still count as at the end
  const { byId } = Dom;
  let views = [];
  let following = true;
  let frame = 0;
  let busyUntil = 0;

  let lastTop = 0;

  const distance = () => byId("log").scrollHeight - byId("log").scrollTop - byId("log").clientHeight;
  const atEnd = () => distance() < kNear;

  // Scrolling up, however little, means reading: the answer then grows without moving the page.
  function onscroll() {
    const top = byId("log").scrollTop;
    following = distance() < 2 || (atEnd() && top >= lastTop);
    lastTop = top;
    byId("to-end").hidden = atEnd();
  }

  function toEnd() {
    following = true;
    byId("log").scrollTop = byId("log").scrollHeight;
    byId("to-end").hidden = true;
  }

  function follow() {
    if (following) byId("log").scrollTop = byId("log").scrollHeight;
    byId("to-end").hidden = atEnd();
  }

  function show(chat, actions, keepPlace) {
    const place = byId("log").scrollTop;
    views = Chat.path(chat).map((node) => {
      const siblings = Chat.siblings(chat, node);
      return new TurnView.View(node, { index: siblings.indexOf(node), siblings, last: node.id === chat.leaf }, actions);
    });
    byId("turns").replaceChildren(...views.map((view) => view.element));
    byId("welcome").hidden = views.length > 0;
    if (keepPlace || views.length === 0) byId("log").scrollTop = views.length === 0 ? 0 : place;
    else toEnd();
    byId("to-end").hidden = atEnd();
  }

  function update(node, running) {
    const view = views.find((candidate) => candidate.node === node);
    if (!view) return;
    view.update(running);
    follow();
  }

  // Draws at most once a frame, and rests four times as long as the drawing took: a fast model costs no more than that.
  function schedule(node) {
    if (frame) return;
    frame = requestAnimationFrame(function draw(now) {
      if (now < busyUntil) { frame = requestAnimationFrame(draw); return; }
      frame = 0;
      const begin = performance.now();
      if (node.end === null) update(node, true);
      const end = performance.now();
      busyUntil = end + 4 * (end - begin);
    });
  }

  async function copyCode(button) {
    const copied = await Clipboard.copy(button.closest(".code").querySelector("pre code").textContent);
    const label = button.querySelector(".copy-label");
    label.textContent = copied ? "Copied" : "Refused";
    Notices.announce(copied ? "Code copied" : "The browser refused to copy");
    setTimeout(() => { label.textContent = "Copy"; }, 2000);
  }

  function init() {
    byId("log").addEventListener("scroll", onscroll, { passive: true });
    byId("to-end").addEventListener("click", () => { toEnd(); byId("log").focus(); });
    byId("turns").addEventListener("click", (event) => {
      const button = event.target.closest(".copy-code");
      if (button) copyCode(button);
    });
    new ResizeObserver(follow).observe(byId("log"));
  }

  return { init, show, update, schedule };
})();
