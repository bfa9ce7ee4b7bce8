// One chat: a tree of messages, since an edited question or a second answer keeps the first. `leaf` is the message at
// the end of the branch that is shown. Plain data, so that it is stored and exported as it is.
//   chat:    {version, id, title, named, system, created, updated, leaf, nodes}
//   message: {id, parent, role, content, reasoning, model, created, end, error, stats}
// `named`: the title is the user's. `system`: a system prompt of this chat's own, or null. `end`: why an answer ended.
const Chat = (() => {
  const kVersion = 1;
  const kMaxNodes = 5000;
  const kMaxText = 4 << 20;
  const kMaxTitle = 200;
  const kRoles = ["user", "assistant"];

  function create() {
    const now = Date.now();
    return { version: kVersion, id: Dom.newId(), title: "New chat", named: false, system: null, created: now, updated: now,
      leaf: null, nodes: [] };
  }

  function add(chat, parent, role, content) {
    const node = { id: Dom.newId(), parent, role, content, reasoning: "", model: "", created: Date.now(), end: null,
      error: null, stats: null };
    chat.nodes.push(node);
    chat.leaf = node.id;
    chat.updated = node.created;
    if (!chat.named && parent === null && role === "user") chat.title = titleFor(content);
    return node;
  }

  function titleFor(content) {
    const line = content.trim().split("\n", 1)[0].trim();
    return (line.length > 60 ? line.slice(0, 60).trimEnd() + "\u2026" : line) || "New chat";
  }

  function find(chat, id) {
    return chat.nodes.find((node) => node.id === id) || null;
  }

  // From the first message to the leaf.
  function path(chat) {
    const byId = new Map(chat.nodes.map((node) => [node.id, node]));
    const out = [];
    for (let node = byId.get(chat.leaf); node; node = byId.get(node.parent)) out.push(node);
    return out.reverse();
  }

  function siblings(chat, node) {
    return chat.nodes.filter((other) => other.parent === node.parent);
  }

  // Shows the branch through `node`, down to its latest message.
  function select(chat, node) {
    const latest = new Map(chat.nodes.map((other) => [other.parent, other]));
    let leaf = node;
    while (latest.has(leaf.id)) leaf = latest.get(leaf.id);
    chat.leaf = leaf.id;
  }

  // Takes a message that nothing follows out again.
  function drop(chat, node) {
    chat.nodes = chat.nodes.filter((other) => other !== node);
    if (chat.leaf === node.id) chat.leaf = node.parent;
  }

  function rename(chat, title) {
    chat.title = title.trim().slice(0, kMaxTitle);
    chat.named = true;
  }

  // Takes over what another tab knows of the same chat and this one does not: nothing that either holds is lost.
  function merge(chat, other) {
    const known = new Map(chat.nodes.map((node) => [node.id, node]));
    for (const node of other.nodes) {
      const mine = known.get(node.id);
      const writing = mine && mine.role === "assistant" && mine.end === null;
      if (!mine) chat.nodes.push(node);
      else if (!writing && node.content.length >= mine.content.length) Object.assign(mine, node);
    }
    Object.assign(chat, { title: other.title, named: other.named, system: other.system });
    chat.updated = Math.max(chat.updated, other.updated);
    if (chat.leaf === null || !chat.nodes.some((node) => node.id === chat.leaf)) chat.leaf = other.leaf;
    const shown = find(chat, chat.leaf);
    const beyond = shown && chat.nodes.some((node) => node.parent === shown.id);
    if (beyond) select(chat, shown);  // the conversation went on over there
  }

  // What goes to the model.
  function messages(nodes, system) {
    const out = system.trim() === "" ? [] : [{ role: "system", content: system }];
    for (const node of nodes) {
      if (node.role === "user" || node.content !== "") out.push({ role: node.role, content: node.content });
    }
    return out;
  }

  const text = (value, limit) => (typeof value === "string" ? value.slice(0, limit) : "");
  const time = (value) => (Number.isFinite(value) && value > 0 && value < 8.64e15 ? value : Date.now());

  function restoreStats(value) {
    if (typeof value !== "object" || value === null) return null;
    const out = {};
    for (const name of ["tokens", "prompt", "first", "rate"]) {
      if (!Number.isFinite(value[name]) || value[name] < 0) return null;
      out[name] = value[name];
    }
    return out;
  }

  function restoreNode(value, known, fallbackParent) {
    if (typeof value !== "object" || value === null || !kRoles.includes(value.role)) return null;
    if (typeof value.content !== "string") return null;
    const id = typeof value.id === "string" && value.id !== "" && !known.has(value.id) ? value.id : Dom.newId();
    const parent = value.parent === undefined ? fallbackParent : value.parent;
    if (parent !== null && !known.has(parent)) return null;  // parents come first, so there are no rings
    const answer = value.role === "assistant";
    return { id, parent, role: value.role, content: text(value.content, kMaxText),
      reasoning: answer ? text(value.reasoning, kMaxText) : "", model: text(value.model, 200), created: time(value.created),
      // An answer without an end was being written when the page went away.
      end: answer ? text(value.end, 20) || "stopped" : null,
      error: answer ? text(value.error, 1000) || null : null, stats: answer ? restoreStats(value.stats) : null };
  }

  // A well-formed chat made of what storage or a file holds, or null. Also takes a bare list of messages.
  function restore(value) {
    if (typeof value !== "object" || value === null) return null;
    const given = Array.isArray(value.nodes) ? value.nodes : value.messages;
    if (!Array.isArray(given) || (value.version !== undefined && value.version !== kVersion)) return null;
    const nodes = [];
    const known = new Set();
    let last = null;
    let system = typeof value.system === "string" ? text(value.system, kMaxText) : null;
    for (const item of given.slice(0, kMaxNodes)) {
      if (item && item.role === "system" && typeof item.content === "string") system = text(item.content, kMaxText);
      const node = restoreNode(item, known, last);
      if (!node) continue;
      nodes.push(node);
      known.add(node.id);
      last = node.id;
    }
    const first = nodes.find((node) => node.role === "user");
    return { version: kVersion, id: text(value.id, 64) || Dom.newId(),
      title: text(value.title, kMaxTitle).trim() || (first ? titleFor(first.content) : "New chat"),
      named: value.named === true, system, created: time(value.created), updated: time(value.updated),
      leaf: known.has(value.leaf) ? value.leaf : last, nodes };
  }

  return { create, add, path, siblings, select, drop, rename, merge, messages, restore };
})();
