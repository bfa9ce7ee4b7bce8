// The list of chats at the side.
const ChatList = (() => {
  const { byId, el, iconButton } = Dom;
  const kDay = 24 * 3600 * 1000;
  const kPage = 60;  // rows drawn at first, and added on request
  let actions = null;  // {open(chat), remove(chat), renamed(chat)}
  let current = null;
  let renaming = null;

  function period(time) {
    const today = new Date().setHours(0, 0, 0, 0);
    if (time >= today) return "Today";
    if (time >= today - kDay) return "Yesterday";
    if (time >= today - 7 * kDay) return "Last seven days";
    return new Date(time).toLocaleDateString("en", { month: "long", year: "numeric" });
  }

  function matches(chat, words) {
    const holds = (text, word) => text.toLowerCase().includes(word);
    return words.every((word) => holds(chat.title, word) || chat.nodes.some((node) => holds(node.content, word)));
  }

  function renameField(chat) {
    const field = el("input", { class: "rename", "aria-label": "Name of the chat", maxlength: "200" });
    field.value = chat.title;
    let done = false;
    const finish = (keep) => {
      if (done) return;
      done = true;
      renaming = null;
      if (keep && field.value.trim() !== "" && field.value.trim() !== chat.title) {
        Chat.rename(chat, field.value);
        Chats.save(chat);
        actions.renamed(chat);
      }
      render();
    };
    field.addEventListener("blur", () => finish(true));
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      finish(event.key === "Enter");
      const row = byId("chat-list").querySelector(`[data-id="${CSS.escape(chat.id)}"] .open-chat`);
      if (row) row.focus();
    });
    return field;
  }

  function rename(chat) {
    renaming = chat;
    render();
    const field = byId("chat-list").querySelector(".rename");
    if (!field) return;
    field.focus();
    field.select();
  }

  function openMenu(button, chat) {
    Menu.open(button, "Chat actions", [
      { label: "Rename", icon: "edit", run: () => rename(chat) },
      { label: "Export as Markdown", icon: "download", run: () => Transfer.saveMarkdown(chat) },
      { label: "Export as JSON", icon: "download", run: () => Transfer.saveJson([chat], chat.title) },
      { label: "Delete", icon: "trash", danger: true, run: () => actions.remove(chat) },
    ]);
  }

  function row(chat) {
    if (chat === renaming) return el("li", { "data-id": chat.id }, renameField(chat));
    const shown = chat === current;
    const busy = Answers.of(chat) ? el("span", { class: "busy", role: "img", "aria-label": "answering" }) : null;
    const open = el("button", { type: "button", class: "open-chat", "aria-current": shown ? "page" : null, title: chat.title,
      onclick: () => actions.open(chat) }, busy, el("span", { class: "title" }, chat.title));
    const more = iconButton("more", "Actions for " + chat.title, () => openMenu(more, chat),
      { class: "icon-button more", "aria-haspopup": "menu", "aria-expanded": "false" });
    return el("li", { "data-id": chat.id, class: shown ? "current" : null }, open, more);
  }

  // What is shown, in short: drawing the same again would only disturb whoever is in the list.
  let drawn = "";
  let limit = kPage;

  function moreButton(left) {
    return el("button", { type: "button", class: "small more-chats", onclick: () => { limit += kPage; render(); } },
      `Show ${Math.min(left, kPage)} more of ${left}`);
  }

  function focusPlace() {
    const node = document.activeElement;
    const row = node && byId("chat-list").contains(node) ? node.closest("li") : null;
    return row && `li[data-id="${CSS.escape(row.dataset.id)}"] .${node.classList.contains("more") ? "more" : "open-chat"}`;
  }

  function render() {
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const found = Chats.list().filter((chat) => matches(chat, words));
    const chats = found.slice(0, limit);
    const groups = new Map();
    for (const chat of chats) {
      const name = period(chat.updated);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(chat);
    }
    const now = JSON.stringify([words, found.length, current && current.id, renaming && renaming.id,
      chats.map((chat) => [chat.id, chat.title, period(chat.updated), Answers.of(chat) !== null])]);
    if (now === drawn) return;
    drawn = now;
    const list = byId("chat-list");
    const place = list.scrollTop;
    const focus = focusPlace();
    const empty = words.length > 0 ? "No chat has these words." : "Chats appear here. They stay in this browser.";
    list.replaceChildren(...(chats.length === 0 ? [el("p", { class: "empty" }, empty)] : []));
    for (const [name, members] of groups) {
      list.append(el("h2", {}, name), el("ul", {}, ...members.map(row)));
    }
    if (found.length > chats.length) list.append(moreButton(found.length - chats.length));
    list.scrollTop = place;
    const node = focus && list.querySelector(focus);
    if (node) node.focus();
  }

  // Many changes in a row are one.
  let due = false;
  function renderSoon() {
    if (due) return;
    due = true;
    queueMicrotask(() => { due = false; if (!renaming) render(); });
  }

  function init(given) {
    actions = given;
    byId("filter").addEventListener("input", render);
    Chats.onchange(renderSoon);
    render();
  }

  return { init, render, show: (chat) => { current = chat; render(); } };
})();
