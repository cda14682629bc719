// The addresses of the screens of duet-rpc web, and the names of devices.
import assert from "node:assert/strict";
import test from "node:test";
import { deviceName } from "../../src/web/pairing";
import { codeOf, hashOf, routeOf } from "../../src/web/routes";
import type { Route } from "../../src/web/routes";

test("an address leads to its screen, whatever is in its names, and an unknown one to the inbox", () => {
  const routes: Route[] = [
    { screen: "inbox" }, { screen: "sessions" }, { screen: "settings" }, { screen: "new" }, { screen: "new", project: "p/1" }, { screen: "question", project: "ä #1", approval: "a/b?c" },
    { screen: "session", project: "p", session: "s" }, { screen: "session", project: "p", session: "s", approval: "q" }, { screen: "changes", project: "p", session: "s" },
  ];
  for (const route of routes) assert.deepEqual(routeOf(hashOf(route)), route);
  for (const [hash, screen] of [["", "inbox"], ["#/", "inbox"], ["#/nothing", "inbox"], ["#/question/p", "inbox"], ["#/session/%E0%A4%A", "sessions"], ["#/changes", "sessions"]] as const) assert.deepEqual(routeOf(hash), { screen });
});

test("an address may have a code", () => {
  assert.deepEqual(["#code=AB-12", "#code=", "#/inbox", ""].map(codeOf), ["AB-12", undefined, undefined, undefined]);
});

test("a device gets a name that its owner knows", () => {
  const agents = { "Android phone": "Mozilla/5.0 (Linux; Android 15; Pixel 9) Mobile Safari/537.36", "Android tablet": "Mozilla/5.0 (Linux; Android 15; Tab) Safari/537.36", iPhone: "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)", Mac: "Mozilla/5.0 (Macintosh; Intel Mac OS X)", "Linux PC": "Mozilla/5.0 (X11; Linux x86_64)", Browser: "" };
  for (const [name, agent] of Object.entries(agents)) assert.equal(deviceName(agent), name);
});
