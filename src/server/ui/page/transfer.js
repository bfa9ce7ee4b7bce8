// Chats out of the page as files, and into it again.
const Transfer = (() => {
  const kFormat = "omnibus-chats";
  const kVersion = 1;
  const kMaxFile = 64 << 20;

  function save(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = Dom.el("a", { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }

  function fileName(title, suffix) {
    const plain = title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
    return (plain || "chat") + suffix;
  }

  function saveJson(chats, title) {
    const text = JSON.stringify({ format: kFormat, version: kVersion, chats }, null, 1);
    save(fileName(title, ".json"), "application/json", text);
  }

  // The shown branch.
  function markdown(chat) {
    const parts = [`# ${chat.title}`];
    if (chat.system) parts.push(`## System prompt\n\n${chat.system}`);
    for (const node of Chat.path(chat)) {
      parts.push(`## ${node.role === "user" ? "You" : node.model || "Answer"}\n\n${node.content}`);
    }
    return parts.join("\n\n") + "\n";
  }

  function saveMarkdown(chat) {
    save(fileName(chat.title, ".md"), "text/markdown", markdown(chat));
  }

  // Chats of a file, each under a new id. Throws with words for the user.
  function parse(text) {
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      throw new Error("The file is not JSON.");
    }
    const plainMessages = Array.isArray(value) && value.every((item) => item && typeof item.role === "string");
    const given = plainMessages ? [{ messages: value }] : Array.isArray(value) ? value
      : value && Array.isArray(value.chats) ? value.chats : [value];
    const chats = given.map(Chat.restore).filter((chat) => chat !== null && chat.nodes.length > 0);
    if (chats.length === 0) throw new Error("The file holds no chat.");
    for (const chat of chats) chat.id = Dom.newId();
    return { chats, skipped: given.length - chats.length };
  }

  async function load(file) {
    if (file.size > kMaxFile) throw new Error("The file is larger than 64 MB.");
    const { chats, skipped } = parse(await file.text());
    chats.forEach(Chats.save);
    return { chats, skipped };
  }

  return { saveJson, saveMarkdown, load };
})();
