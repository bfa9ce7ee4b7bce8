// All chats, the latest first; kept in the browser, and in step with those of other tabs.
const Chats = (() => {
  const kMaxChats = 500;
  const byId = new Map();
  const listeners = [];
  const tabs = "BroadcastChannel" in window ? new BroadcastChannel("omnibus.chats") : null;
  let limitReached = () => { };

  // chat: the one that another tab changed, or null.
  const changed = (chat) => listeners.forEach((listener) => listener(chat));
  const list = () => Array.from(byId.values()).sort((a, b) => b.updated - a.updated);
  const tell = (id) => { if (tabs) tabs.postMessage(id); };

  async function load(onfailure, onlimit) {
    limitReached = onlimit;
    if (tabs) tabs.addEventListener("message", (event) => refresh(event.data));
    for (const stored of await Storage.chats(onfailure)) {
      const chat = Chat.restore(stored);
      if (chat && chat.nodes.length > 0 && !byId.has(chat.id)) byId.set(chat.id, chat);
    }
    changed(null);
  }

  // Another tab wrote or removed this chat.
  async function refresh(id) {
    const stored = Chat.restore(await Storage.get(id));
    const mine = byId.get(id);
    if (!stored) byId.delete(id);
    else if (mine) Chat.merge(mine, stored);
    else byId.set(id, stored);
    changed(mine || stored);
  }

  // Keeps a chat that has something in it. Beyond the limit the oldest goes.
  async function save(chat) {
    if (chat.nodes.length === 0) return;
    const isNew = !byId.has(chat.id);
    byId.set(chat.id, chat);
    if (isNew && byId.size > kMaxChats) {
      const oldest = list()[byId.size - 1];
      remove(oldest);
      limitReached(`The ${kMaxChats} latest chats are kept; \u201c${oldest.title}\u201d was removed.`);
    }
    changed(null);
    await Storage.put(chat);
    tell(chat.id);
  }

  async function remove(chat) {
    byId.delete(chat.id);
    changed(null);
    await Storage.remove(chat.id);
    tell(chat.id);
  }

  return { load, save, remove, list, has: (chat) => byId.get(chat.id) === chat,
    onchange: (listener) => listeners.push(listener) };
})();
