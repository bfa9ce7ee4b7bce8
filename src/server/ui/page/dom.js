// Building DOM. Text only ever becomes text nodes: nothing here, nor anywhere in the page, turns text into markup.
const Dom = (() => {
  const kSvg = "http://www.w3.org/2000/svg";

  const byId = (id) => document.getElementById(id);

  // el("button", {class: "main", onclick: f, "aria-label": "Send"}, child...). False and missing values are left out.
  function el(tag, properties, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : String(value));
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  // A drawing of the sheet of symbols in chat_page.html.
  function icon(name) {
    const svg = document.createElementNS(kSvg, "svg");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    const use = document.createElementNS(kSvg, "use");
    use.setAttribute("href", "#icon-" + name);
    svg.append(use);
    return svg;
  }

  function iconButton(name, label, onclick, properties) {
    return el("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...properties },
      icon(name));
  }

  // Random and unique enough; crypto.randomUUID is absent where a page comes over plain HTTP from another machine.
  function newId() {
    return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
  }

  return { byId, el, icon, iconButton, newId };
})();
