// Push messages in the page's own service worker.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { BrowserContext, CDPSession, Page, Worker } from "playwright-core";
import { approvalOf, sessionOf } from "./fakeweb";
import type { FakeWeb } from "./fakeweb";
import { startWebPages, until } from "./webpage";
import type { WebPages } from "./webpage";

let pages: WebPages;

before(async () => {
  pages = await startWebPages();
});

after(() => pages?.close());

interface Shown {
  title: string;
  body: string;
  tag: string;
  actions: string[];
}

type Options = { body: string; tag: string; data?: unknown; actions?: Array<{ action: string }> };

/** A notification, and how it is closed. */
interface Fake extends Options {
  title: string;
  close: () => void;
}

declare const self: { all: Fake[]; registration: object; dispatchEvent(event: Event): void };
declare const ExtendableEvent: new (type: string) => Event;
declare const WindowClient: { prototype: object };

/** The headless Chromium shows no notifications, so the worker gets others in their place. */
function replaceNotifications(): void {
  self.all = [];
  Object.assign(self.registration, {
    showNotification: (title: string, options: Options) => {
      const shown: Fake = { title, ...options, close: () => (self.all = self.all.filter((one) => one !== shown)) };
      self.all = [...self.all.filter(({ tag }) => tag !== options.tag), shown];
      return Promise.resolve();
    },
    getNotifications: ({ tag }: { tag: string }) => Promise.resolve(self.all.filter((one) => one.tag === tag)),
  });
}

/** A paired page whose service worker gets push messages. */
async function pushed(): Promise<{ page: Page; web: FakeWeb; context: BrowserContext; worker: Worker; push: (message: object) => Promise<void>; shown: () => Promise<Shown[]> }> {
  const { page, web, context } = await pages.open({ prepare: (web) => {
    web.sessions[0]!.sessions.push(sessionOf(12));
    web.approvals.push({ project: "p1", approval: approvalOf("q1", 12) });
  } });
  const client: CDPSession = await context.newCDPSession(page);
  const registered = new Promise<string>((resolve) => {
    client.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const found = registrations.find(({ scopeURL }) => scopeURL.startsWith(web.origin));
      if (found) resolve(found.registrationId);
    });
  });
  await client.send("ServiceWorker.enable");
  await page.evaluate(() => navigator.serviceWorker.ready);
  const registrationId = await registered;
  const worker = context.serviceWorkers().find((one) => one.url().startsWith(web.origin))!;
  await worker.evaluate(replaceNotifications);
  return {
    page, web, context, worker,
    push: (message) => client.send("ServiceWorker.deliverPushMessage", { origin: web.origin, registrationId, data: JSON.stringify(message) }).then(() => undefined),
    shown: () => worker.evaluate(() => self.all.map(({ title, body, tag, actions }) => ({ title, body, tag, actions: (actions ?? []).map(({ action }) => action) }))),
  };
}

const question = { tag: "p1 q1", title: "parser", body: "A session needs you", project: "p1", approval: "q1", fingerprint: "print-q1", actions: false };

test("a question has one notification, which is withdrawn when it is answered", async () => {
  const { push, shown } = await pushed();
  await push(question);
  await until("the notification", shown, (all) => all.length === 1);
  await push({ ...question, body: "It has changed" });
  const [again] = await until("the newer one", shown, (all) => all[0]?.body === "It has changed");
  assert.deepEqual([again!.title, again!.actions, (await shown()).length], ["parser", [], 1]);
  await push({ tag: "p1 q1", withdrawn: true });
  await until("the end", shown, (all) => all.length === 0);
});

/** click clicks the notification, or one of its buttons. */
function click(worker: Worker, action: string): Promise<void> {
  return worker.evaluate((of) => void self.dispatchEvent(Object.assign(new ExtendableEvent("notificationclick"), { notification: self.all[0]!, action: of })), action);
}

test("Allow in a notification answers with the key of the device and the fingerprint of what was shown", async () => {
  const { web, worker, push, shown, page } = await pushed();
  await push({ ...question, actions: true });
  const [notification] = await until("the notification", shown, (all) => all.length === 1);
  assert.deepEqual(notification!.actions, ["approve", "deny"]);
  await click(worker, "approve");
  await page.getByText("No question is open.").waitFor();
  assert.deepEqual(web.decided, [{ key: "key-1", body: { project: "p1", approval: "q1", fingerprint: "print-q1", decision: "approve" } }]);
  assert.deepEqual(await shown(), []);
});

test("an answer that does not count is shown by a notification", async () => {
  const { web, worker, push, shown } = await pushed();
  await push({ ...question, actions: true });
  await until("the notification", shown, (all) => all.length === 1);
  web.off();
  await click(worker, "deny");
  const [failed] = await until("the failure", shown, (all) => all[0]?.title === "Your answer did not count");
  assert.equal(failed!.body, "parser: duet-rpc cannot be reached");
});

test("a tap on a notification opens its question in the open page", async () => {
  const { page, worker, push, shown } = await pushed();
  await push(question);
  await until("the notification", shown, (all) => all.length === 1);
  // A worker may focus a page only in answer to a real tap.
  await worker.evaluate(() => void Object.assign(WindowClient.prototype, { focus: () => Promise.resolve() }));
  await click(worker, "");
  await page.getByRole("group", { name: "Question: Run npm test" }).waitFor();
  assert.match(page.url(), /#\/question\/p1\/q1$/);
});
