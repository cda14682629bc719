// The service worker: the page's own files without a connection, and push messages as notifications.
import type { Push, PushDecision } from "./protocol";
import { hashOf } from "./routes";
import { deviceKey } from "./store";

// The types of a service worker and those of a page exclude each other.
interface Waits extends Event {
  waitUntil(promise: Promise<unknown>): void;
}

interface WindowClient {
  readonly url: string;
  focus(): Promise<unknown>;
  postMessage(message: unknown): void;
}

interface Worker {
  readonly registration: ServiceWorkerRegistration & { showNotification(title: string, options: NotificationOptions & { actions?: Array<{ action: string; title: string }> }): Promise<void> };
  readonly clients: { claim(): Promise<void>; matchAll(options: { type: "window"; includeUncontrolled: true }): Promise<WindowClient[]>; openWindow(url: string): Promise<unknown> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: Waits) => void): void;
  addEventListener(type: "fetch", listener: (event: Waits & { request: Request; respondWith(response: Promise<Response>): void }) => void): void;
  addEventListener(type: "push", listener: (event: Waits & { data: { json(): unknown } | null }) => void): void;
  addEventListener(type: "notificationclick", listener: (event: Waits & { action: string; notification: Notification }) => void): void;
}

const worker = self as unknown as Worker;

const cacheName = "duet";

/** The page's own files, relative to the worker. */
const files = ["./", "web.js", "languages.js", "web.css", "manifest.webmanifest", "icon.svg", "icon.png"];

const addresses = new Set(files.map((file) => new URL(file, location.href).href));

/** The data of a notification. */
type Shown = Pick<PushDecision, "project" | "approval" | "fingerprint"> | undefined;

worker.addEventListener("install", (event) => {
  event.waitUntil(caches.open(cacheName).then((cache) => cache.addAll(files)).then(() => worker.skipWaiting()));
});

worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const address = new URL(request.url);
  address.hash = address.search = "";
  if (request.method === "GET" && addresses.has(address.href)) event.respondWith(fromServer(request, address.href));
});

/** fromServer returns a file of the server, which may have a newer one. Without a connection, it returns the last one. */
async function fromServer(request: Request, address: string): Promise<Response> {
  const cache = await caches.open(cacheName);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(address, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(address);
    if (kept) return kept;
    throw error;
  }
}

worker.addEventListener("push", (event) => {
  let push: Push;
  try {
    push = event.data?.json() as Push;
  } catch {
    return;
  }
  if (typeof push?.tag === "string") event.waitUntil(push.withdrawn ? withdraw(push.tag) : show(push));
});

async function withdraw(tag: string): Promise<void> {
  for (const notification of await worker.registration.getNotifications({ tag })) notification.close();
}

/** show shows one notification for each question: a newer one with the same tag replaces it. */
async function show({ tag, title, body, project, approval, fingerprint, actions }: Exclude<Push, { withdrawn: true }>): Promise<void> {
  const data: Shown = project === undefined || approval === undefined ? undefined : { project, approval, fingerprint: fingerprint ?? "" };
  const buttons = actions === true && data !== undefined && data.fingerprint !== "";
  await worker.registration.showNotification(title, {
    body, tag, data, icon: "icon.png", badge: "icon.png", dir: "auto",
    ...(buttons && { actions: [{ action: "approve", title: "Allow" }, { action: "deny", title: "Deny" }] }),
  });
}

worker.addEventListener("notificationclick", (event) => {
  const { action, notification } = event;
  notification.close();
  const shown = notification.data as Shown;
  event.waitUntil(shown && (action === "approve" || action === "deny") ? decide(notification, shown, action) : open(shown));
});

/** decide answers a question. A refused answer is shown, and leads to the question. */
async function decide({ tag, title }: Notification, shown: NonNullable<Shown>, decision: PushDecision["decision"]): Promise<void> {
  let why = "duet-rpc cannot be reached";
  try {
    const decided: PushDecision = { ...shown, decision };
    const response = await fetch("decide", { method: "POST", headers: { "Content-Type": "application/json", "Duet-Key": (await deviceKey()) ?? "" }, body: JSON.stringify(decided) });
    const { success, error } = (await response.json()) as { success?: boolean; error?: string };
    if (success === true) return;
    why = error ?? `duet-rpc answered ${response.status}`;
  } catch {
    // The user has to know that the answer does not count.
  }
  await worker.registration.showNotification("Your answer did not count", { body: `${title}: ${why}`, tag, data: shown, icon: "icon.png", badge: "icon.png", dir: "auto" });
}

/** open shows a question, or the inbox, in an open page or in a new one. */
async function open(shown: Shown): Promise<void> {
  const hash = shown ? hashOf({ screen: "question", project: shown.project, approval: shown.approval }) : "#/inbox";
  const [page] = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (!page) return void (await worker.clients.openWindow(`./${hash}`));
  await page.focus();
  page.postMessage({ open: hash });
}
