// All chats, the latest first; kept in the browser.
const Chats = (() => {
  const kMaxChats = 500;
  const byId = new Map();
  const listeners = [];
  let limitReached = () => { };

  const changed = () => listeners.forEach((listener) => listener());
  const list = () => Array.from(byId.values()).sort((a, b) => b.updated - a.updated);

  async function load(onfailure, onlimit) {
    limitReached = onlimit;
    for (const stored of await Storage.chats(onfailure)) {
      const chat = Chat.restore(stored);
      if (chat && chat.nodes.length > 0 && !byId.has(chat.id)) byId.set(chat.id, chat);
    }
    changed();
  }

  // Keeps a chat that has something in it. Beyond the limit the oldest goes.
  function save(chat) {
    if (chat.nodes.length === 0) return;
    const isNew = !byId.has(chat.id);
    byId.set(chat.id, chat);
    Storage.put(chat);
    if (isNew && byId.size > kMaxChats) {
      const oldest = list()[byId.size - 1];
      remove(oldest);
      limitReached(`The ${kMaxChats} latest chats are kept; \u201c${oldest.title}\u201d was removed.`);
    }
    changed();
  }

  function remove(chat) {
    byId.delete(chat.id);
    Storage.remove(chat.id);
    changed();
  }

  return { load, save, remove, list, get: (id) => byId.get(id) || null, has: (chat) => byId.get(chat.id) === chat,
    onchange: (listener) => listeners.push(listener) };
})();
