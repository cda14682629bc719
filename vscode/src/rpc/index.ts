export * from "./types.js";
export * from "./error.js";
export * from "./client.js";
export * from "./server.js";
export * from "./transport.js";
