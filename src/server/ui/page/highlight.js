// Colours in code: comments, strings, numbers, words of the language. One pass, linear in the text; what it does not
// know stays plain.
const Highlight = (() => {
  const kMaxText = 60000;  // longer code is shown plain
  const words = (text) => new Set(text.split(" "));

  const kC = words(
    "alignas alignof and as assert async auto await become bool boolean break byte case catch chan char class " +
    "co_await co_return co_yield concept const consteval constexpr continue crate debugger decltype default defer " +
    "delete do double dyn else enum explicit export extends extern false final finally float fn for friend from " +
    "fun func function go goto if impl implements import in inline instanceof int interface internal is let long " +
    "loop macro map match mod module move mut mutable namespace new noexcept nil null nullptr number object " +
    "operator or override package private protected pub public range readonly ref register requires return select " +
    "self sealed short signed sizeof static static_cast string struct super switch template this throw throws " +
    "trait true try type typedef typeof typename undefined union unsafe unsigned use using val var virtual void " +
    "volatile when where while with yield");
  const kPython = words(
    "False None True and as assert async await break case class continue def del elif else except finally for " +
    "from global if import in is lambda match nonlocal not or pass raise return self try while with yield");
  const kShell = words(
    "case do done elif else esac exit export fi for function if in local return set shift then unset until while " +
    "cd echo sudo");
  const kRuby = words(
    "alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo " +
    "rescue retry return self super then true unless until when while yield require local function repeat");
  const kSql = words(
    "add all alter and as asc begin between by case cast check column commit constraint create cross default " +
    "delete desc distinct drop else end exists foreign from full group having if in index inner insert into is " +
    "join key left like limit not null offset on or order outer primary references right rollback select set " +
    "table then union unique update values view when where with");
  const kData = words(
    "true false null yes no on off");

  // line: what begins a comment to the end of the line; block: a pair; quotes: of strings; long: quotes over lines.
  const kFamilies = {
    c: { line: ["//"], block: ["/*", "*/"], quotes: "\"'", long: ["`"], words: kC },
    python: { line: ["#"], quotes: "\"'", long: ['"""', "'''"], words: kPython },
    shell: { line: ["#"], quotes: "\"'`", long: [], words: kShell },
    ruby: { line: ["#", "--"], quotes: "\"'`", long: [], words: kRuby },
    sql: { line: ["--"], block: ["/*", "*/"], quotes: "'\"", long: [], words: kSql, anyCase: true },
    data: { line: ["#", "//"], quotes: "\"'", long: ['"""'], words: kData },
    css: { line: [], block: ["/*", "*/"], quotes: "\"'", long: [], words: new Set() },
    markup: { line: [], block: ["<!--", "-->"], quotes: "\"'", long: [], words: new Set(), tags: true },
  };
  const kNames = {
    c: "c h cc cpp c++ cxx hpp cu cuda objc java js javascript jsx mjs ts typescript tsx go golang rust rs swift kotlin " +
      "kt scala dart cs csharp c# php zig proto glsl wgsl solidity groovy v",
    python: "python py python3 pyi starlark bazel",
    shell: "sh bash zsh shell console fish dockerfile docker make makefile cmake powershell ps1",
    ruby: "ruby rb lua elixir ex julia jl r perl pl",
    sql: "sql mysql postgres postgresql sqlite plsql haskell hs",
    data: "json json5 jsonc yaml yml toml ini conf nix hcl terraform tf graphql",
    css: "css scss less",
    markup: "html xml svg vue xhtml",
  };
  const kFamilyOf = new Map(Object.entries(kNames).flatMap(([family, names]) =>
    names.split(" ").map((name) => [name, kFamilies[family]])));

  const kWord = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
  const kNumber = /(?:0[xXbBoO][0-9a-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)\w*/y;
  const kTag = /<\/?[A-Za-z][\w:-]*|\/?>/y;

  function at(pattern, text, place) {
    pattern.lastIndex = place;
    const match = pattern.exec(text);
    return match ? match[0].length : 0;
  }

  function untilText(text, place, end, from) {
    const found = text.indexOf(end, from);
    return (found < 0 ? text.length : found + end.length) - place;
  }

  function stringLength(text, place, quote) {
    let end = place + 1;
    while (end < text.length && text[end] !== quote && text[end] !== "\n") end += text[end] === "\\" ? 2 : 1;
    return Math.min(text.length, text[end] === quote ? end + 1 : end) - place;
  }

  // [kind, length] of what begins at a place; kind "" is plain.
  function token(text, place, family) {
    const letter = text[place];
    if (family.block && text.startsWith(family.block[0], place)) {
      return ["comment", untilText(text, place, family.block[1], place + family.block[0].length)];
    }
    for (const mark of family.line) {
      const spaced = mark !== "#" || place === 0 || /\s/.test(text[place - 1]);
      if (spaced && text.startsWith(mark, place)) {
        const end = text.indexOf("\n", place);
        return ["comment", (end < 0 ? text.length : end) - place];
      }
    }
    for (const quote of family.long) {
      if (text.startsWith(quote, place)) return ["string", untilText(text, place, quote, place + quote.length)];
    }
    if (family.quotes.includes(letter)) return ["string", stringLength(text, place, letter)];
    if (family.tags && (letter === "<" || letter === ">" || letter === "/")) {
      const length = at(kTag, text, place);
      if (length > 0) return ["word", length];
    }
    if (letter >= "0" && letter <= "9") return ["number", at(kNumber, text, place)];
    const length = at(kWord, text, place);
    if (length === 0) return ["", 1];
    const word = text.substr(place, length);
    return [family.words.has(family.anyCase ? word.toLowerCase() : word) ? "word" : "", length];
  }

  // Nodes that show the text.
  function nodes(text, language) {
    const family = kFamilyOf.get(language.toLowerCase());
    if (!family || text.length > kMaxText) return [text];
    const out = [];
    let plain = 0;
    for (let place = 0; place < text.length;) {
      const [kind, length] = token(text, place, family);
      if (kind !== "") {
        if (plain < place) out.push(text.slice(plain, place));
        out.push(Dom.el("span", { class: "code-" + kind }, text.substr(place, length)));
        plain = place + length;
      }
      place += length;
    }
    if (plain < text.length) out.push(text.slice(plain));
    return out;
  }

  return { nodes };
})();
