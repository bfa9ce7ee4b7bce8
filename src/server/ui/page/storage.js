// Where the browser keeps things: small ones in localStorage, chats in IndexedDB. Either may be forbidden, full or
// broken; then the page works on without, and says once that nothing is kept.
const Storage = (() => {
  const kDatabase = "omnibus";
  const kVersion = 1;
  let database = null;
  let warn = () => { };
  let warned = false;

  function failed(error) {
    if (!warned) warn("Chats cannot be saved in this browser: " + ((error && error.message) || "storage is off"));
    warned = true;
  }

  // Small values: JSON in localStorage.
  function recall(name) {
    try {
      return JSON.parse(localStorage.getItem("omnibus." + name));
    } catch {
      return null;  // forbidden, or not ours
    }
  }

  function remember(name, value) {
    try {
      if (value === null) localStorage.removeItem("omnibus." + name);
      else localStorage.setItem("omnibus." + name, JSON.stringify(value));
    } catch (error) {
      failed(error);
    }
  }

  function settled(request) {
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
      request.onblocked = () => reject(new Error("another tab holds the storage"));
    });
  }

  async function open() {
    const request = indexedDB.open(kDatabase, kVersion);
    request.onupgradeneeded = () => request.result.createObjectStore("chats", { keyPath: "id" });
    database = await settled(request);
    database.onversionchange = () => { database.close(); database = null; };
  }

  function store(mode) {
    return database.transaction("chats", mode).objectStore("chats");
  }

  // All stored chats, as they are; whoever takes them checks them.
  async function chats(onfailure) {
    warn = onfailure;
    try {
      await open();
      return await settled(store("readonly").getAll());
    } catch (error) {
      failed(error);
      return [];
    }
  }

  async function get(id) {
    try {
      return database ? await settled(store("readonly").get(id)) : null;
    } catch {
      return null;
    }
  }

  // Committed at once and not when the answer has come: the page may be gone by then.
  async function write(change) {
    if (!database) return;
    try {
      const chats = store("readwrite");
      const request = change(chats);
      chats.transaction.commit();
      await settled(request);
    } catch (error) {
      failed(error);
    }
  }

  const put = (chat) => write((chats) => chats.put(chat));
  const remove = (id) => write((chats) => chats.delete(id));

  return { recall, remember, chats, get, put, remove };
})();
