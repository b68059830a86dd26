// A tool. Its arguments match the schema in the configuration.
function tool({ title }) {
  const words = title.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().match(/[a-z0-9]+/g);
  if (!words) throw new Error("the title has no letters that a name could be made of");
  return words.join("-");
}
