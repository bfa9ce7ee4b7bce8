// Light, dark, or as the system has it.
const Theme = (() => {
  const kNames = ["system", "light", "dark"];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let choice = "system";

  function apply() {
    const name = choice === "system" ? (dark.matches ? "dark" : "light") : choice;
    document.documentElement.dataset.theme = name;
  }

  function set(name) {
    choice = kNames.includes(name) ? name : "system";
    Storage.remember("theme", choice);
    apply();
  }

  function toggle() {
    set(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  }

  function load() {
    const stored = Storage.recall("theme");
    choice = kNames.includes(stored) ? stored : "system";
    dark.addEventListener("change", apply);
    apply();
  }

  return { load, set, toggle, get choice() { return choice; } };
})();
