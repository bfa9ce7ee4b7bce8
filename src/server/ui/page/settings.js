// What goes with every request beside the messages. What is not set is not sent: the server's defaults hold.
const Settings = (() => {
  const kVersion = 1;
  // name: the request's field. Bounds are the server's.
  const kNumbers = [
    { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.05,
      hint: "Higher is more varied; 0 always takes the likeliest word." },
    { name: "top_p", label: "Top p", min: 0, max: 1, step: 0.01,
      hint: "Only the likeliest words that add up to this share." },
    { name: "top_k", label: "Top k", min: -1, max: 2147483647, step: 1,
      hint: "Only so many of the likeliest words; 0 is all." },
    { name: "min_p", label: "Min p", min: 0, max: 1, step: 0.01,
      hint: "Only words at least this likely next to the likeliest." },
    { name: "max_tokens", label: "Longest answer", min: 1, max: 2147483647, step: 1,
      hint: "In tokens. Without it, as long as the context allows." },
    { name: "seed", label: "Seed", min: -9007199254740991, max: 9007199254740991, step: 1,
      hint: "The same seed gives the same answer again." },
    { name: "repetition_penalty", label: "Repetition penalty", min: 0.01, max: 10, step: 0.01,
      hint: "Above 1 discourages words that were there before." },
    { name: "presence_penalty", label: "Presence penalty", min: -2, max: 2, step: 0.05,
      hint: "Above 0 favours words not used yet." },
    { name: "frequency_penalty", label: "Frequency penalty", min: -2, max: 2, step: 0.05,
      hint: "Above 0 discourages words the more they were used." },
  ];
  const kMaxStops = 16;

  function empty() {
    return { version: kVersion, system: "", model: "", stop: [], numbers: {} };
  }

  let values = empty();

  function inBounds(field, number) {
    return Number.isFinite(number) && number >= field.min && number <= field.max &&
      (field.step !== 1 || Number.isInteger(number));
  }

  function load() {
    const stored = Storage.recall("settings");
    values = empty();
    if (typeof stored !== "object" || stored === null || stored.version !== kVersion) return;
    if (typeof stored.system === "string") values.system = stored.system;
    if (typeof stored.model === "string") values.model = stored.model;
    const stop = Array.isArray(stored.stop) ? stored.stop : [];
    values.stop = stop.filter((s) => typeof s === "string" && s !== "").slice(0, kMaxStops);
    const numbers = typeof stored.numbers === "object" && stored.numbers !== null ? stored.numbers : {};
    for (const field of kNumbers) {
      if (inBounds(field, numbers[field.name])) values.numbers[field.name] = numbers[field.name];
    }
  }

  function save() {
    Storage.remember("settings", values);
  }

  // The fields of the request.
  function fields() {
    const out = { ...values.numbers };
    if (values.stop.length > 0) out.stop = values.stop;
    return out;
  }

  return {
    kNumbers, kMaxStops, load, fields, inBounds,
    get system() { return values.system; },
    get model() { return values.model; },
    get stop() { return values.stop; },
    number: (name) => values.numbers[name],
    set(change) { Object.assign(values, change); save(); },
    setNumber(name, number) {
      if (number === null) delete values.numbers[name];
      else values.numbers[name] = number;
      save();
    },
    resetSampling() { values.numbers = {}; values.stop = []; save(); },
  };
})();
