export * from "./messages.js";
export * from "./client.js";
export * from "./server.js";
export * from "./transport.js";
