// The page: puts the parts together.
const Page = (() => {
  const { byId } = Dom;
  const kSpoken = 2000;  // characters of an answer that are read out when it is done
  let chat = Chat.create();

  const turnActions = { edit, regenerate, retry: regenerate, goOn, select };

  const listener = {
    progress(run) {
      if (run.chat === chat) LogView.schedule(run.node);
    },
    finished(run) {
      if (run.chat === chat) {
        LogView.update(run.node, false);
        Composer.setRunning(false);
        showContext();
      }
      ChatList.render();
      if (run.status === 401) SettingsDialog.openForKey();
      if (run.node.end !== "error") Notices.announce("Answer: " + run.node.content.slice(0, kSpoken));
    },
  };

  function showContext() {
    const last = Chat.path(chat).filter((node) => node.stats && node.stats.prompt > 0).pop();
    Models.showContext(last ? last.stats.prompt + last.stats.tokens : 0);
  }

  function showTitle() {
    byId("title").textContent = chat.nodes.length > 0 ? chat.title : "New chat";
    document.title = chat.nodes.length > 0 ? `${chat.title} \u2013 omnibus` : "omnibus";
  }

  // Shows the chat as it is now.
  function show(keepPlace) {
    const run = Answers.of(chat);
    LogView.show(chat, turnActions, keepPlace);
    if (run) LogView.update(run.node, true);
    Composer.setRunning(run !== null);
    ChatList.show(chat);
    showTitle();
    showContext();
  }

  function open(other) {
    chat = other;
    show(false);
    Drawer.leave();
    Composer.offer();
  }

  function newChat() {
    open(chat.nodes.length === 0 ? chat : Chat.create());
  }

  function answer(parent) {
    const node = Chat.add(chat, parent, "assistant", "");
    Answers.start(chat, node, listener);
    show(false);
    Notices.announce("Answering");
  }

  function submit(text) {
    if (Answers.of(chat)) return false;
    const last = Chat.path(chat).pop();
    answer(Chat.add(chat, last ? last.id : null, "user", text).id);
    return true;
  }

  function edit(node, text) {
    if (Answers.of(chat)) return;
    answer(Chat.add(chat, node.parent, "user", text).id);
    Composer.offer();
  }

  // Another answer beside the first; one that is nothing but an error makes way.
  function regenerate(node) {
    if (Answers.of(chat)) return;
    const parent = node.parent;
    const last = Chat.path(chat).pop() === node;
    if (node.error && node.content === "" && last) Chat.drop(chat, node);
    answer(parent);
    Composer.offer();
  }

  function goOn(node) {
    if (Answers.of(chat)) return;
    Answers.start(chat, node, listener, true);
    show(false);
    Composer.offer();
    Notices.announce("Answering");
  }

  function select(node) {
    if (Answers.of(chat)) return;
    Chat.select(chat, node);
    Chats.save(chat);
    show(true);
    Notices.announce("Another version is shown");
  }

  function stop() {
    if (Drawer.isOver()) Drawer.close();
    else Answers.stop(chat);
  }

  function remove(other) {
    Answers.stop(other);
    Chats.remove(other);
    if (other === chat) newChat();
    byId("new-chat").focus();
    Notices.show(`\u201c${other.title}\u201d was deleted.`,
      { label: "Undo", run: () => { Chats.save(other); open(other); } });
  }

  async function importFile() {
    const file = byId("import-file").files[0];
    if (!file) return;
    try {
      const { chats, skipped } = await Transfer.load(file);
      byId("settings").close();
      open(chats[0]);
      const left = skipped > 0 ? ` ${skipped} could not be read.` : "";
      Notices.show(`${chats.length} ${chats.length === 1 ? "chat" : "chats"} imported.${left}`);
    } catch (error) {
      byId("import-error").textContent = error.message;
    }
    byId("import-file").value = "";
  }

  function removeAll() {
    const chats = Chats.list();
    chats.forEach((other) => { Answers.stop(other); Chats.remove(other); });
    byId("settings").close();
    open(Chat.create());
    Notices.show(`${chats.length} ${chats.length === 1 ? "chat was" : "chats were"} deleted.`,
      { label: "Undo", run: () => { chats.forEach(Chats.save); } });
  }

  function loadModels() {
    Models.load((error) => {
      if (error.status === 401) SettingsDialog.openForKey();
      else Notices.show(error.message, { label: "Try again", run: loadModels });
    }).then(showContext);
  }

  function initButtons() {
    byId("new-chat").addEventListener("click", newChat);
    byId("new-chat-top").addEventListener("click", newChat);
    byId("open-settings").addEventListener("click", SettingsDialog.open);
    byId("open-help").addEventListener("click", () => byId("help").showModal());
    byId("toggle-theme").addEventListener("click", Theme.toggle);
    byId("export-all").addEventListener("click", () => Transfer.saveJson(Chats.list(), "omnibus chats"));
    byId("import").addEventListener("click", () => { byId("import-error").textContent = ""; byId("import-file").click(); });
    byId("import-file").addEventListener("change", importFile);
    byId("remove-all").addEventListener("click", removeAll);
    for (const button of document.querySelectorAll("[data-prompt]")) {
      button.addEventListener("click", () => { Composer.set(button.dataset.prompt); Composer.focus(); });
    }
    for (const dialog of document.querySelectorAll("dialog")) {
      dialog.querySelector(".close").addEventListener("click", () => dialog.close());
      dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    }
  }

  async function start() {
    Theme.load();
    Settings.load();
    Composer.init(submit, () => Answers.stop(chat));
    LogView.init();
    Menu.init();
    Drawer.init();
    ChatList.init({ open, remove, renamed: (other) => { if (other === chat) showTitle(); } });
    Models.init(showContext);
    SettingsDialog.init({ keyChanged: loadModels, chat: () => chat,
      chatChanged: () => { if (Chats.has(chat)) Chats.save(chat); } });
    // The shown chat went on in another tab.
    Chats.onchange((other) => { if (other === chat && !Answers.of(chat)) show(true); });
    Shortcuts.init({ newChat, stop, help: () => byId("help").showModal(), settings: SettingsDialog.open,
      drawer: Drawer.toggle, write: Composer.focus });
    initButtons();
    show(false);
    Composer.offer();
    loadModels();
    await Chats.load((message) => Notices.show(message), (message) => Notices.show(message));
    document.documentElement.dataset.ready = "true";
  }

  return { start };
})();

Page.start();
