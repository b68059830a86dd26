// Runs on each definition: hides tools that delete, and marks the descriptions of the others.
function metadata(definition, kind) {
  if (kind !== "tools") return definition;
  if (definition.name.startsWith("delete_")) return null;
  return { ...definition, description: `${definition.description} (by way of the front)` };
}

// Runs on each call: refuses arguments with passwords, and repeats a call once if the server is busy.
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
