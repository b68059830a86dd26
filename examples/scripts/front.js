// What is listed: tools that delete are left out, and the others say who is in front of them.
function metadata(definition, kind) {
  if (kind !== "tools") return definition;
  if (definition.name.startsWith("delete_")) return null;
  return { ...definition, description: `${definition.description} (by way of the front)` };
}

// What is called: names are kept short, secrets stay inside, and a server that is busy is asked once more.
async function request(call, next) {
  if (call.method !== "tools/call") return next(call);
  if (JSON.stringify(call.arguments).includes("password")) {
    throw new Error("passwords are not for tools");
  }
  try {
    return await next(call);
  } catch (error) {
    if (error.kind !== "busy") throw error;
    return next(call);
  }
}
